"""Small models for test_fp16.py: a name, the opset, and the graph as onnx.parser reads it; `= ?` stands for seeded values.

SAME: the converter in ONNX Runtime's Python package makes the same model of it, node by node and byte by byte.
BETTER: it makes another one, or one that does not load; docs/differences.md says why."""

SAME = [
    ("conv", 17, "(float[1,2,5,5] x) => (float[1,3,5,5] y) <float[3,2,3,3] w = ?, float[3] b = ?> { c = Conv<pads=[1,1,1,1]>(x, w, b)  y = Relu(c) }"),
    ("two_inputs_two_outputs", 17, "(float[2,3] a, int64[3] i, float[2,3] b) => (float[2,3] y, float[2,3] z, bool[2,3] g)"
     " { z = Mul(a, b)  y = Add(z, a)  g = Greater(y, z) }"),
    ("matmul", 17, "(float[2,8] x) => (float[2,4] y) <float[8,4] w = ?, float[4] b = ?> { m = MatMul(x, w)  y = Add(m, b) }"),
    ("layer_norm", 17, "(float[2,8] x) => (float[2,8] y) <float[8] s = ?, float[8] b = ?> { y = LayerNormalization(x, s, b) }"),
    ("gemm_softmax", 13, "(float[2,8] x) => (float[2,4] y) <float[4,8] w = ?, float[4] b = ?> { g = Gemm<transB=1>(x, w, b)  y = Softmax(g) }"),
    ("resize_scales", 13, "(float[1,1,2,2] x) => (float[1,1,4,4] y) <float[0] r = {}, float[4] s = {1,1,2,2}> { y = Resize(x, r, s) }"),
    ("resize_10", 10, "(float[1,1,2,2] x) => (float[1,1,4,4] y) <float[4] s = {1,1,2,2}> { y = Resize(x, s) }"),
    ("resize_roi", 13, "(float[1,1,4,4] x) => (float[1,1,2,2] y) <float[8] r = {0,0,0,0,1,1,1,1}, float[4] s = {1,1,0.5,0.5}>"
     " { y = Resize<coordinate_transformation_mode=\"tf_crop_and_resize\">(x, r, s) }"),
    ("resize_computed_scales", 13, "(float[1,1,2,2] x, float[4] k) => (float[1,1,?,?] y) <float[0] r = {}, float[4] one = {1,1,1,1}>"
     " { s = Add(k, one)  y = Resize(x, r, s) }"),
    ("top_k", 13, "(float[2,5] x) => (float[2,2] y, int64[2,2] i) <int64[1] k = {2}> { r = Relu(x)  v, i = TopK(r, k)  y = Sqrt(v) }"),
    ("range", 13, "(float[4] x) => (float[?] y) <float a = {0}, float b = {4}, float d = {1}> { r = Range(a, b, d)  y = Add(x, r) }"),
    ("cum_sum", 14, "(float[4] x) => (float[4] y) <int64 a = {0}> { r = Relu(x)  c = CumSum(r, a)  y = Neg(c) }"),
    ("min_max", 13, "(float[4] x) => (float[4] y) <float a = {-0.5}, float b = {0.5}> { r = Neg(x)  h = Max(r, a)  s = Sqrt(h)  l = Min(s, b)  y = Neg(l) }"),
    ("cast", 13, "(int64[3] i, float[3] x) => (float[3] y, int64[3] j) { f = Cast<to=1>(i)  y = Mul(f, x)  j = Cast<to=7>(y) }"),
    ("constant", 13, "(float[3] x) => (float[3] y) { c = Constant<value = float[3] {1.5, 1e-9, 1e4}>()  y = Mul(x, c) }"),
    ("constant_of_shape", 13, "(int64[2] s, float[1] x) => (float[?,?] y) { c = ConstantOfShape<value = float[1] {2.5}>(s)  y = Mul(c, x) }"),
    ("constant_of_shape_default", 13, "(int64[2] s, float[1] x) => (float[?,?] y) { c = ConstantOfShape(s)  y = Add(c, x) }"),
    ("eye_like", 13, "(int64[3,3] s, float[3,3] x) => (float[3,3] y) { e = EyeLike<dtype=1>(s)  y = Add(e, x) }"),
    ("random_normal", 13, "(float[3] x) => (float[3] y) { r = RandomNormal<shape=[3], seed=1.0>()  y = Add(r, x) }"),
    ("random_normal_like", 13, "(float[3] x) => (float[3] y) { r = RandomNormalLike<seed=1.0>(x)  y = Add(r, x) }"),
    ("random_uniform", 13, "(float[3] x) => (float[3] y) { r = RandomUniform<shape=[3], dtype=1, seed=1.0>()  y = Add(r, x) }"),
    ("bernoulli", 15, "(float[3] x) => (float[3] y) { r = Bernoulli<dtype=1, seed=1.0>(x)  y = Add(r, x) }"),
    ("limits", 13, "(float[9] x) => (float[9] y) <float[9] k = {0, -0.0, 1e-8, -1e-8, 5.9e-8, 65504, 65519, 1e38, -3.4e38}> { y = Add(x, k) }"),
    ("loop", 13, """(float[2] x, int64 n) => (float[2] y, float[?,2] s) <float[2] w = {0.5, 2}, bool t = {1}> {
       y, s = Loop(n, t, x) <body = b (int64 i, bool c, float[2] v) => (bool d, float[2] o, float[2] p) { d = Identity(c)  o = Mul(v, w)  p = Neg(o) }> }"""),
    ("if", 13, """(float[2] x, bool c) => (float[2] y) <float[2] w = {0.5, 2}> {
       h = Relu(x)
       y = If(c) <then_branch = a () => (float[2] p) { p = Mul(h, w) }, else_branch = b () => (float[2] q) <float[2] k = {3, 4}> { q = Sub(h, k) }> }"""),
    ("scan", 13, """(float[2] x, float[3,2] z) => (float[2] y, float[3,2] s) {
       y, s = Scan(x, z) <num_scan_inputs=1, body = b (float[2] a, float[2] e) => (float[2] o, float[2] p) { o = Add(a, e)  p = Neg(o) }> }"""),
    ("lstm", 14, "(float[3,1,4] x) => (float[3,1,1,5] y) <float[1,20,4] w = ?, float[1,20,5] r = ?> { y = LSTM<hidden_size=5>(x, w, r) }"),
    ("shared_weight", 13, "(float[2,4] x) => (float[2,4] y) <float[4,4] w = ?> { a = MatMul(x, w)  y = MatMul(a, w) }"),
    ("inner_value_is_output", 13, "(float[4] x) => (float[4] y, float[4] z) { y = Relu(x)  z = Neg(y) }"),
    ("default_of_input", 13, "(float[4] x, float[4] w) => (float[4] y) <float[4] w = {1,2,3,4}> { y = Mul(x, w) }"),
    ("qdq_19", 19, "(float[4] x) => (float[4] y) <float s = {0.5}, uint8 z = {128}> { r = Relu(x)  q = QuantizeLinear(r, s, z)  d = DequantizeLinear(q, s, z)  y = Sigmoid(d) }"),
    ("matmul_nbits", 17, "(float[1,32] x) => (float[1,4] y) <uint8[4,1,16] w = ?, float[4,1] s = ?>"
     " { y = com.microsoft.MatMulNBits<K=32, N=4, bits=4, block_size=32>(x, w, s) }"),
    ("contrib", 17, "(float[1,2,8] x, float[1,2,8] z) => (float[1,2,8] y) <float[8] g = ?, float[8] b = ?> { y = com.microsoft.SkipLayerNormalization(x, z, g, b) }"),
    ("nothing_known_of_inner_values", 13, "(float[?,?] x) => (float[?,?] y) <int64[1] k = {1}> { a = Abs(x)  v, i = TopK(a, k)  y = Sqrt(v) }"),
]

BETTER = [
    # one Cast less, or none: what stays float hands float over
    ("kept_in_a_row", 13, "(float[4] x) => (float[4] y) <float a = {-0.5}, float b = {0.5}> { r = Neg(x)  h = Max(r, a)  y = Min(h, b) }"),
    ("kept_from_input_to_output", 14, "(float[4] x) => (float[4] y, float[4] z) <int64 a = {0}> { y = CumSum(x, a)  z = Neg(x) }"),
    ("cast_for_kept", 13, "(int64[2] n, float[?] x) => (float[?] y, float[?] z) <float a = {0}, int64 i = {0}, float d = {1}>"
     " { k = Gather(n, i)  f = Cast<to=1>(k)  y = Range(a, f, d)  z = Neg(x) }"),
    ("constant_for_kept", 13, "(float[4] x) => (float[4] y) { c = Constant<value = float {1e6}>()  m = Min(x, c)  y = Neg(m) }"),
    # a constant that both read keeps its digits where it is read as float
    ("constant_of_both", 13, "(float[4] x) => (float[4] y) <float c = {3.14159}> { r = Neg(x)  m = Min(r, c)  s = Add(r, c)  y = Mul(m, s) }"),
    ("constant_is_output", 13, "(float[4] x) => (float[4] y, float[4] c) <float[4] c = {1,2,3,1e-9}> { y = Mul(x, c) }"),
    ("input_is_output", 13, "(float[4] x) => (float[4] x, float[4] y) { y = Neg(x) }"),
    ("unused_input", 13, "(float[4] x, float[4] u) => (float[4] y) { y = Neg(x) }"),
    # operators and slots without a half form
    ("is_inf", 13, "(float[4] x) => (bool[4] y) { r = Relu(x)  y = IsInf(r) }"),
    ("celu", 13, "(float[4] x) => (float[4] y) { r = Neg(x)  c = Celu(r)  y = Neg(c) }"),
    ("layer_norm_mean", 17, "(float[2,8] x) => (float[2,8] y, float[2,1] z) <float[8] s = ?, float[8] b = ?> { y, m = LayerNormalization(x, s, b)  z = Neg(m) }"),
    ("dynamic_quantize", 13, "(float[2,4] x) => (float[2,4] y) { r = Neg(x)  q, s, z = DynamicQuantizeLinear(r)  d = DequantizeLinear(q, s, z)  y = Neg(d) }"),
    ("qdq_13", 13, "(float[4] x) => (float[4] y) <float s = {0.5}, uint8 z = {128}> { r = Relu(x)  q = QuantizeLinear(r, s, z)  d = DequantizeLinear(q, s, z)  y = Sigmoid(d) }"),
    ("qdq_small_scale", 19, "(float[4] x) => (float[4] y) <float s = {1e-6}, int32[4] b = {100,200,300,400}> { d = DequantizeLinear(b, s)  y = Add(x, d) }"),
    ("qlinear_conv", 13, """(float[1,1,4,4] x) => (float[1,1,4,4] y) <float s = {0.05}, uint8 z = {128}, uint8[1,1,1,1] w = {200}> {
       r = Neg(x)  q = QuantizeLinear(r, s, z)  c = QLinearConv(q, s, z, w, s, z, s, z)  y = DequantizeLinear(c, s, z) }"""),
    ("constant_floats", 13, "(float[2] x) => (float[2] y) { c = Constant<value_floats=[1.5, 1e-9]>()  k = Constant<value_float=2.5>()  a = Mul(x, c)  y = Mul(a, k) }"),
    ("hann_window", 17, "(float[8] x, int64 n) => (float[8] y) { w = HannWindow(n)  y = Mul(x, w) }"),
    ("integer_sums", 13, """(float[2,4] x) => (float[2,3] y) <uint8[4,3] w = {200,255,250,255,255,255,255,255,255,255,255,255}, uint8 z = {0}, float[1] k = {0.0001}> {
       r = Abs(x)  q, s, zp = DynamicQuantizeLinear(r)  i = MatMulInteger(q, w, zp, z)  f = Cast<to=1>(i)  t = Mul(s, k)  m = Mul(f, t)  y = Neg(m) }"""),
    # inside branches and loops
    ("kept_inside_branch", 13, """(float[4] x, bool c) => (float[?] y) <int64[1] k = {2}> {
       h = Relu(x)
       y = If(c) <then_branch = a () => (float[?] p) { r = Abs(h)  p, i = TopK(r, k) }, else_branch = b () => (float[?] q) { q = Max(h) }> }"""),
    ("kept_inside_loop", 14, """(float[2] x, int64 n) => (float[2] y) <bool t = {1}, int64 a = {0}> {
       y = Loop(n, t, x) <body = b (int64 i, bool c, float[2] v) => (bool d, float[2] o) { d = Identity(c)  s = CumSum(v, a)  o = Neg(s) }> }"""),
    ("captured_by_kept", 14, """(float[2] x, bool c) => (float[2] y) <int64 a = {0}> {
       h = Neg(x)
       g = Abs(h)
       y = If(c) <then_branch = a () => (float[2] p) { p = CumSum(h, a) }, else_branch = b () => (float[2] q) { q = Neg(g) }> }"""),
    # sequences of the signature keep their type
    ("sequence_output", 13, "(float[2,3] x) => (seq(float[?,?]) s, float[2,3] y) <int64 one = {1}> { s = SplitToSequence(x, one)  y = Neg(x) }"),
    ("names_taken", 13, "(float[4] x, float[4] graph_input_cast_0) => (float[4] y) { graph_output_cast_0 = Neg(x)  r_cast_to_fp32 = Abs(graph_input_cast_0)"
     "  r = Add(graph_output_cast_0, r_cast_to_fp32)  m = Max(r, r)  y = Neg(m) }"),
]

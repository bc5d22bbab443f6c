/* bench/make_model.c - writes models of real size with random weights, so that measuring needs nothing from
 * outside: `make_model resnet50|bert|minilm|vit|KIND OUT [OPTION N]...`.
 *
 * resnet50: Conv, BatchNormalization and Relu apart, 25.6 million parameters, 1x3x224x224; `--dynamic`: any batch.
 * bert, minilm, vit: as PyTorch exports them with a dynamic batch, see make_text.c and make_vision.c. `--torch 2` writes
 * them as version 2 does; --layers and --hidden make small ones for tests.
 * The other kinds, those of make_scale.c, have --nodes small nodes, to see how time grows with them. */
#include "maker.h"

static const struct kind {
    const char *name;
    void (*make)(struct maker *k);
    int64_t layers, hidden, heads, inner;
} kinds[] = {
    {.name = "resnet50", .make = make_resnet50},
    {.name = "bert", .make = make_bert, .layers = 12, .hidden = 768, .heads = 12, .inner = 3072},
    {.name = "minilm", .make = make_bert, .layers = 6, .hidden = 384, .heads = 12, .inner = 1536},
    {.name = "vit", .make = make_vit, .layers = 12, .hidden = 768, .heads = 12, .inner = 3072},
};

/* --hidden N keeps the heads, and an inner size of four times it. */
static bool options(struct maker *k, int argc, char **argv, int64_t *nodes, int64_t *torch)
{
    for (int i = 3; i < argc; i += 2) {
        int64_t n = 0;
        if (strcmp(argv[i], "--dynamic") == 0) {
            k->dynamic = true;
            i--; /* no number behind it */
            continue;
        }
        if (i + 1 >= argc || !wml_parse_i64(wml_str(argv[i + 1]), &n) || n < 1) return false;
        if (strcmp(argv[i], "--layers") == 0)
            k->layers = n;
        else if (strcmp(argv[i], "--hidden") == 0 && k->heads && n % k->heads == 0)
            k->hidden = n, k->inner = 4 * n;
        else if (strcmp(argv[i], "--torch") == 0 && n <= 2)
            *torch = n;
        else if (strcmp(argv[i], "--nodes") == 0)
            *nodes = n;
        else
            return false;
    }
    return true;
}

static int usage(void)
{
    fprintf(stderr, "usage: make_model resnet50|bert|minilm|vit OUT [--dynamic] [--torch 1|2] [--layers N] [--hidden N]\n"
                    "       make_model KIND OUT [--nodes N]    kinds: see make_scale.c\n");
    return 2;
}

int main(int argc, char **argv)
{
    struct wml_err err = {0};
    int64_t nodes = 100000, torch = 1;
    const struct kind *kind = NULL;
    for (size_t i = 0; argc > 2 && i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(argv[1], kinds[i].name) == 0) kind = &kinds[i];
    struct maker k = {.rng = {7}};
    if (kind) k.layers = kind->layers, k.hidden = kind->hidden, k.heads = kind->heads, k.inner = kind->inner;
    if (argc < 3 || !options(&k, argc, argv, &nodes, &torch)) return usage();
    k.torch2 = torch == 2;
    k.m = wml_model_new();
    k.g = k.m->graph;
    k.g->name = WML_STR("main_graph");
    k.m->producer_name = WML_STR("winml bench");
    k.m->ir_version = 8;
    wml_model_set_opset(k.m, "", k.torch2 ? 17 : 14);
    if (kind) kind->make(&k);
    else if (!make_scale(&k, argv[1], nodes)) return usage();
    struct wml_onnx_save_opts opts = {.external = WML_EXTERNAL_NEVER};
    if (!wml_onnx_save(k.m, argv[2], &opts, NULL, &err)) maker_give_up(&err);
    wml_model_free(k.m);
    return 0;
}

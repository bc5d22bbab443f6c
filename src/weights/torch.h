/* weights/torch.h - from the dictionary of a checkpoint's pickle to tensors with bytes. Internal to src/weights. */
#ifndef WML_WEIGHTS_TORCH_H
#define WML_WEIGHTS_TORCH_H

#include "weights/internal.h"
#include "weights/pickle.h"

/* Sets s->bytes to those of the storage, exactly s->n elements of s->dtype. */
typedef bool wml_torch_locate(void *archive, struct wml_pickle_storage *s, struct wml_err *err);

/* Adds the tensors of the dictionary, or of the model's dictionary inside of a training checkpoint. Those that are not in
 * C order are copied into it; copies together may take `most` bytes. */
bool wml_torch_add_all(struct wml_weights *w, const struct wml_pickle *root, wml_torch_locate *locate, void *archive,
                       uint64_t most, struct wml_err *err);
/* Bytes of a storage's elements; false on overflow. */
bool wml_torch_storage_size(const struct wml_pickle_storage *s, uint64_t *bytes);

#endif

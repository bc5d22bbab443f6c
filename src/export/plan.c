/* export/plan.c - which family and which task a config is of. */
#include "export/export.h"
#include "text/words.h"

/* "qwen2" -> "qwen": the name without the number of its release. */
static struct wml_str stem(struct wml_str name)
{
    while (name.len && name.ptr[name.len - 1] >= '0' && name.ptr[name.len - 1] <= '9') name.len--;
    return name;
}

/* A family that the name speaks of: "conditional_detr", "gpt_neox", "qwen3_moe". The longest counts. */
static const char *within(struct wml_str model_type)
{
    const char *best = NULL;
    size_t longest = 2;
    for (size_t from = 0, to; from < model_type.len; from = to + 1) {
        for (to = from; to < model_type.len && model_type.ptr[to] != '_' && model_type.ptr[to] != '-'; to++) {}
        const struct wml_str word = wml_str_sub(model_type, from, to);
        for (const struct wml_family *const *f = wml_families; *f; f++)
            for (const struct wml_family_type *t = (*f)->type; t->model_type; t++) {
                const bool same = wml_str_is(word, t->model_type);
                const size_t like = same ? word.len + 1 : wml_str_eq(stem(word), stem(wml_str(t->model_type))) ? stem(word).len : 0;
                if (like <= longest) continue;
                best = t->model_type;
                longest = like;
            }
    }
    return best;
}

/* The first family that does what the config's class does. */
static const char *of_same_task(const struct wml_json_val *cfg)
{
    const struct wml_str klass = wml_json_str(wml_json_at(wml_json_get(cfg, "architectures"), 0));
    const char *task = klass.len ? wml_task_of_class(klass) : NULL;
    for (const struct wml_family *const *f = wml_families; task && *f; f++)
        if (strcmp((*f)->task->task, task) == 0) return (*f)->type->model_type;
    return NULL;
}

const char *wml_export_nearest(const struct wml_json_val *cfg)
{
    const struct wml_str model_type = wml_json_get_str(cfg, "model_type");
    struct wml_arena arena = {0};
    WML_VEC(const char *) names = {0};
    for (const struct wml_family *const *f = wml_families; *f; f++)
        for (const struct wml_family_type *t = (*f)->type; t->model_type; t++) WML_PUSH_IN(&arena, &names, t->model_type);
    const char *near = within(model_type);
    if (!near) near = wml_similar(model_type, names.at, names.len);
    wml_arena_release(&arena);
    return near ? near : of_same_task(cfg);
}

static bool no_family(const struct wml_export_source *s, struct wml_str model_type, struct wml_err *err)
{
    const char *near = wml_export_nearest(s->cfg);
    wml_fail(err, WML_E_UNSUPPORTED, "%s is of the family '%.*s', which winml cannot export", s->name, WML_ARG(model_type));
    if (near) wml_hint(err, "the nearest one it can is '%s'; docs/internals/adding-a-family.md says how to add one", near);
    else wml_hint(err, "docs/internals/adding-a-family.md says how to add one");
    return false;
}

static const struct wml_family_composite *find_composite(const struct wml_family *f, struct wml_str task)
{
    for (const struct wml_family_composite *c = f->composite; c && c->task; c++)
        if (wml_str_is(task, c->task)) return c;
    return NULL;
}

/* A composite with a part of that name: of a user who asks for a part by its own task. */
static const struct wml_family_composite *with_part(const struct wml_family *f, const char *part)
{
    for (const struct wml_family_composite *c = f->composite; c && c->task; c++)
        for (const struct wml_family_part *p = c->part; part && p->name; p++)
            if (strcmp(p->name, part) == 0) return c;
    return NULL;
}

/* As asked, else what the asked one is another name of; features of pictures and of texts are one to a family. */
static const struct wml_family_task *task_row(const struct wml_family *f, struct wml_str task)
{
    const struct wml_family_task *t = wml_family_task_of(f, task);
    if (!t) t = wml_family_task_of(f, wml_task_canonical(task));
    if (!t && wml_str_is(wml_task_canonical(task), "feature-extraction")) t = wml_family_task_of(f, WML_STR("image-feature-extraction"));
    return t;
}

/* What a family can do, as the hint of an error. */
static bool hint_tasks(const struct wml_export_plan *p, struct wml_err *err)
{
    struct wml_buf list = {.max = 400};
    for (const struct wml_family_task *t = p->family->task; t->task; t++) wml_buf_fmt(&list, "%s%s", list.len ? ", " : "", t->task);
    for (const struct wml_family_composite *c = p->family->composite; c && c->task; c++)
        if (*c->task && !wml_family_task_of(p->family, wml_str(c->task))) wml_buf_fmt(&list, ", %s", c->task);
    wml_hint(err, "tasks it can: %s", wml_buf_text(&list));
    wml_buf_release(&list);
    return false;
}

/* The task that the config's class is of. */
static struct wml_str detect(const struct wml_export_source *s, const struct wml_family *f, bool *by_class)
{
    const struct wml_str klass = wml_json_str(wml_json_at(wml_json_get(s->cfg, "architectures"), 0));
    const char *task = klass.len ? wml_task_of_class(klass) : NULL;
    *by_class = task != NULL;
    if (wml_str_ends(wml_json_get_str(s->cfg, "model_type"), "_vision_model")) return WML_STR("image-feature-extraction");
    if (!task) return wml_str(f->task->task);
    if (strcmp(task, "fill-mask") == 0 && wml_json_get_bool(s->cfg, "is_encoder_decoder", false)) task = "text2text-generation";
    if (strcmp(task, "text-classification") == 0 && !wml_family_task_of(f, wml_str(task)) && wml_family_task_of(f, WML_STR("audio-classification")))
        task = "audio-classification"; /* classes of sequences are of sound where the family is */
    const bool seen = strcmp(task, "feature-extraction") == 0 && !wml_family_task_of(f, WML_STR("feature-extraction"));
    return seen && wml_family_task_of(f, WML_STR("image-feature-extraction")) ? WML_STR("image-feature-extraction") : wml_str(task);
}

/* A config of timm's own has an architecture in place of it. */
static struct wml_str type_of(const struct wml_json_val *cfg)
{
    const struct wml_str type = wml_json_get_str(cfg, "model_type");
    return !type.len && wml_json_get_str(cfg, "architecture").len ? WML_STR("timm_wrapper") : type;
}

bool wml_export_plan(const struct wml_export_source *s, const char *task, struct wml_export_plan *out, struct wml_err *err)
{
    *out = (struct wml_export_plan){.cfg = s->cfg};
    const struct wml_str type = type_of(s->cfg);
    if (!wml_json_is_object(s->cfg)) return wml_fail(err, WML_E_FORMAT, "%s: config.json holds no object", s->name);
    if (!type.len) {
        wml_fail(err, WML_E_FORMAT, "%s: config.json has no model_type", s->name);
        return wml_hint(err, "it says of which family a model is: \"model_type\": \"bert\"");
    }
    out->family = wml_family_find(type, &out->type);
    if (!out->family) return no_family(s, type, err);
    out->task = task ? wml_str(task) : detect(s, out->family, &out->by_class);
    if (task && !wml_task_is_known(out->task)) {
        wml_fail(err, WML_E_USAGE, "no task is called '%s'; the model is of the family %s", task, out->type->model_type);
        return hint_tasks(out, err);
    }
    out->composite = find_composite(out->family, out->task);
    const bool generates = wml_str_is(out->task, "text2text-generation");
    if (!out->composite && generates && out->family->composite && (!task || !wml_family_task_of(out->family, out->task))) out->composite = out->family->composite;
    if (!out->composite) out->composite = with_part(out->family, s->submodel);
    if (out->composite && s->inputs_named && wml_family_task_of(out->family, out->task)) out->composite = NULL;
    if (out->composite) return true;
    out->one = task_row(out->family, out->task);
    if (out->one) return true;
    wml_fail(err, WML_E_USAGE, "%s cannot be exported for the task '%.*s'", out->type->model_type, WML_ARG(out->task));
    return hint_tasks(out, err);
}

bool wml_export_can(struct wml_str model_type, struct wml_str task)
{
    const struct wml_family_type *type;
    const struct wml_family *f = wml_family_find(model_type, &type);
    return f && (task_row(f, task) || find_composite(f, task));
}

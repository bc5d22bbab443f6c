/* export/task.c - names of tasks, and what a class says about its task. */
#include "export/export.h"

static const char *const known[] = {
    "image-classification", "image-segmentation", "image-feature-extraction", "image-to-image", "image-to-text",
    "image-text-to-text", "object-detection", "depth-estimation", "semantic-segmentation", "keypoint-detection",
    "keypoint-matching", "mask-generation", "masked-im", "video-classification", "zero-shot-image-classification",
    "zero-shot-object-detection", "inpainting", "text-to-image", "text-classification", "token-classification",
    "question-answering", "text-generation", "text2text-generation", "fill-mask", "feature-extraction", "multiple-choice",
    "next-sentence-prediction", "table-question-answering", "document-question-answering", "sentence-similarity",
    "audio-classification", "audio-frame-classification", "audio-xvector", "automatic-speech-recognition", "text-to-audio",
    "zero-shot-audio-classification", "visual-question-answering", "any-to-any", "reinforcement-learning",
    "time-series-forecasting", "zero-shot-classification", "summarization", "translation",
};

static const struct {
    const char *name, *is;
} aliases[] = {
    {"audio-ctc", "automatic-speech-recognition"}, {"speech2seq-lm", "automatic-speech-recognition"},
    {"causal-lm", "text-generation"}, {"masked-lm", "fill-mask"}, {"seq2seq-lm", "text2text-generation"},
    {"summarization", "text2text-generation"}, {"translation", "text2text-generation"},
    {"sequence-classification", "text-classification"}, {"zero-shot-classification", "text-classification"},
    {"next-sentence-prediction", "text-classification"}, {"vision2seq-lm", "image-to-text"},
    {"text-to-speech", "text-to-audio"}, {"default", "feature-extraction"}, {"sentence-similarity", "feature-extraction"},
    {"image-feature-extraction", "feature-extraction"}, {"pretraining", "feature-extraction"},
    {"semantic-segmentation", "image-segmentation"},
};

/* The first that fits counts. '*' at the start: any class with that end. */
static const struct {
    const char *klass, *task;
} classes[] = {
    {"*ForAudioClassification", "audio-classification"}, {"*ForSpeechClassification", "audio-classification"},
    {"*ForAudioFrameClassification", "audio-frame-classification"}, {"*ForXVector", "audio-xvector"},
    {"*ForCTC", "automatic-speech-recognition"}, {"WhisperForConditionalGeneration", "automatic-speech-recognition"},
    {"*ForDepthEstimation", "depth-estimation"}, {"CLIPModel", "feature-extraction"}, {"SiglipModel", "feature-extraction"},
    {"VisionEncoderDecoderModel", "image-to-text"}, {"MarianMTModel", "text2text-generation"},
    {"GPT2LMHeadModel", "text-generation"}, {"SamModel", "mask-generation"}, {"Sam2Model", "mask-generation"},
    {"Sam2VideoModel", "mask-generation"},
    {"*ModelWithProjection", "feature-extraction"}, {"*ForMaskedLM", "fill-mask"},
    {"BartForConditionalGeneration", "fill-mask"}, {"BlipForConditionalGeneration", "image-to-text"},
    {"*ForConditionalGeneration", "text2text-generation"},
    {"*ForImageClassification", "image-classification"}, {"*ForImageClassificationWithTeacher", "image-classification"},
    {"*ForSemanticSegmentation", "image-segmentation"}, {"*ForSegmentation", "image-segmentation"},
    {"*ForInstanceSegmentation", "image-segmentation"}, {"*ForUniversalSegmentation", "image-segmentation"},
    {"*ForImageSuperResolution", "image-to-image"}, {"*ForMaskedImageModeling", "masked-im"},
    {"*ForMultipleChoice", "multiple-choice"}, {"OwlViTForObjectDetection", "zero-shot-object-detection"},
    {"Owlv2ForObjectDetection", "zero-shot-object-detection"}, {"*ForObjectDetection", "object-detection"},
    {"*ForQuestionAnswering", "question-answering"}, {"*ForSequenceClassification", "text-classification"},
    {"*ForNextSentencePrediction", "next-sentence-prediction"}, {"*ForTokenClassification", "token-classification"},
    {"*ForCausalLM", "text-generation"}, {"*ForPoseEstimation", "keypoint-detection"}, {"*Model", "feature-extraction"},
};

struct wml_str wml_task_canonical(struct wml_str task)
{
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++)
        if (wml_str_is(task, aliases[i].name)) return wml_str(aliases[i].is);
    return task;
}

const char *wml_task_name(size_t i)
{
    return i < sizeof known / sizeof *known ? known[i] : NULL;
}

bool wml_task_is_known(struct wml_str task)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (wml_str_is(task, known[i])) return true;
    return !wml_str_eq(wml_task_canonical(task), task);
}

const char *wml_task_of_class(struct wml_str class_name)
{
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
        const char *k = classes[i].klass;
        if (*k == '*' ? wml_str_ends(class_name, k + 1) : wml_str_is(class_name, k)) return classes[i].task;
    }
    return NULL;
}

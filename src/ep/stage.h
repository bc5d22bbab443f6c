/* ep/stage.h - what a pipeline for generation says of the stages that run on an EP. */
#ifndef WML_EP_STAGE_H
#define WML_EP_STAGE_H

#include "ep/ep.h"

struct wml_ep_stage {
    const struct wml_pair *option; /* provider options; {0} ends */
    unsigned intra_threads, inter_threads; /* 0: not said */
};

#endif

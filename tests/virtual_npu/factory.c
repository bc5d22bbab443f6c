/* factory.c - what ORT calls first: the two exported functions, the device on offer, one EP per
 * session.
 *
 * ORT allows an EP to invent hardware only when the host says so: by registering the library under
 * a name that ends in ".virtual", or by the environment entry "allow_virtual_devices". Then the
 * device is of type NPU. Otherwise a CPU device stands in, and the EP's metadata tells. */
#include "vnpu.h"
#include "context.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "onnxruntime_env_config_keys.h"
#include "onnxruntime_ep_device_ep_metadata_keys.h"

#if defined(_WIN32)
#define VNPU_EXPORT __declspec(dllexport)
#else
#define VNPU_EXPORT __attribute__((visibility("default")))
#endif

VNPU_EXPORT OrtStatus *CreateEpFactories(const char *registered_name, const OrtApiBase *base,
                                         const OrtLogger *logger, OrtEpFactory **factories,
                                         size_t max, size_t *n);
VNPU_EXPORT OrtStatus *ReleaseEpFactory(OrtEpFactory *factory);

static struct vnpu_factory *factory_of(OrtEpFactory *base)
{
    return (struct vnpu_factory *)base; /* `base` is its first member */
}

static const char *ORT_API_CALL factory_name(const OrtEpFactory *base)
{
    (void)base;
    return VNPU_NAME;
}

static const char *ORT_API_CALL factory_vendor(const OrtEpFactory *base)
{
    (void)base;
    return VNPU_VENDOR;
}

static uint32_t ORT_API_CALL factory_vendor_id(const OrtEpFactory *base)
{
    (void)base;
    return VNPU_VENDOR_ID;
}

static const char *ORT_API_CALL factory_version(const OrtEpFactory *base)
{
    (void)base;
    return VNPU_VERSION;
}

/* --- devices --- */

static OrtStatus *virtual_devices_allowed(const struct vnpu_factory *f, bool *allowed)
{
    OrtKeyValuePairs *entries = NULL;
    VNPU_TRY(f->ep_api->GetEnvConfigEntries(&entries));
    const char *v = f->api->GetKeyValue(entries, kOrtEnvAllowVirtualDevices);
    *allowed = v != NULL && strcmp(v, "1") == 0;
    f->api->ReleaseKeyValuePairs(entries);
    return NULL;
}

static OrtStatus *create_hardware(struct vnpu_factory *f)
{
    OrtKeyValuePairs *facts = NULL;
    if (f->hardware != NULL) return NULL;
    f->api->CreateKeyValuePairs(&facts);
    f->api->AddKeyValuePair(facts, kOrtHardwareDevice_MetadataKey_IsVirtual, "1");
    f->api->AddKeyValuePair(facts, "Description", "Virtual NPU, computes on the CPU");
    OrtStatus *st =
        f->ep_api->CreateHardwareDevice(OrtHardwareDeviceType_NPU, VNPU_VENDOR_ID, VNPU_DEVICE_ID,
                                        VNPU_VENDOR, facts, &f->hardware);
    f->api->ReleaseKeyValuePairs(facts);
    return st;
}

static OrtStatus *offer(struct vnpu_factory *f, const OrtHardwareDevice *hardware,
                        OrtEpDevice **out)
{
    OrtKeyValuePairs *facts = NULL;
    f->api->CreateKeyValuePairs(&facts);
    f->api->AddKeyValuePair(facts, "virtual", "1");
    f->api->AddKeyValuePair(facts, "device_type", "NPU");
    f->api->AddKeyValuePair(facts, "description", "Virtual NPU, computes on the CPU");
    f->api->AddKeyValuePair(facts, "architecture", VNPU_ARCHITECTURE);
    OrtStatus *st = f->ep_api->CreateEpDevice(&f->base, hardware, facts, NULL, out);
    f->api->ReleaseKeyValuePairs(facts);
    return st;
}

static OrtStatus *ORT_API_CALL factory_devices(OrtEpFactory *base,
                                               const OrtHardwareDevice *const *devices,
                                               size_t n_devices, OrtEpDevice **out, size_t max,
                                               size_t *n)
{
    struct vnpu_factory *f = factory_of(base);
    const OrtHardwareDevice *hardware = NULL;
    bool allowed = false;
    *n = 0;
    VNPU_TRY(virtual_devices_allowed(f, &allowed));
    if (allowed) {
        VNPU_TRY(create_hardware(f));
        hardware = f->hardware;
    }
    for (size_t i = 0; i < n_devices && hardware == NULL; i++)
        if (f->api->HardwareDevice_Type(devices[i]) == OrtHardwareDeviceType_CPU)
            hardware = devices[i];
    if (hardware == NULL || max == 0) return NULL;
    VNPU_TRY(offer(f, hardware, &out[0]));
    *n = 1;
    return NULL;
}

/* --- EPs --- */

static OrtStatus *ORT_API_CALL factory_create_ep(OrtEpFactory *base,
                                                 const OrtHardwareDevice *const *devices,
                                                 const OrtKeyValuePairs *const *metadata,
                                                 size_t n_devices, const OrtSessionOptions *so,
                                                 const OrtLogger *logger, OrtEp **out)
{
    struct vnpu_factory *f = factory_of(base);
    struct vnpu_ep *ep = NULL;
    (void)devices;
    (void)metadata;
    *out = NULL;
    if (n_devices != 1) return vnpu_fail(f->api, "takes one device, not %zu", n_devices);
    VNPU_TRY(vnpu_ep_create(f, so, logger, &ep));
    *out = &ep->base;
    return NULL;
}

static void ORT_API_CALL factory_release_ep(OrtEpFactory *base, OrtEp *ep)
{
    (void)base;
    vnpu_ep_free((struct vnpu_ep *)ep);
}

static OrtStatus *ORT_API_CALL factory_validate(OrtEpFactory *base,
                                                const OrtHardwareDevice *const *devices,
                                                size_t n_devices, const char *info,
                                                OrtCompiledModelCompatibility *out)
{
    (void)base;
    (void)devices;
    (void)n_devices;
    if (info == NULL || strncmp(info, VNPU_ARCHITECTURE ";", strlen(VNPU_ARCHITECTURE ";")) != 0)
        *out = OrtCompiledModelCompatibility_EP_UNSUPPORTED;
    else
        *out = strcmp(info, VNPU_ARCHITECTURE ";" VNPU_VERSION) == 0
                   ? OrtCompiledModelCompatibility_EP_SUPPORTED_OPTIMAL
                   : OrtCompiledModelCompatibility_EP_SUPPORTED_PREFER_RECOMPILATION;
    return NULL;
}

/* --- allocators, copies, streams: all is CPU memory, so there is nothing to offer --- */

static OrtStatus *ORT_API_CALL factory_create_allocator(OrtEpFactory *base,
                                                        const OrtMemoryInfo *info,
                                                        const OrtKeyValuePairs *options,
                                                        OrtAllocator **out)
{
    (void)base;
    (void)info;
    (void)options;
    *out = NULL;
    return NULL;
}

static void ORT_API_CALL factory_release_allocator(OrtEpFactory *base, OrtAllocator *a)
{
    (void)base;
    (void)a;
}

static OrtStatus *ORT_API_CALL factory_data_transfer(OrtEpFactory *base, OrtDataTransferImpl **out)
{
    (void)base;
    *out = NULL;
    return NULL;
}

static bool ORT_API_CALL factory_stream_aware(const OrtEpFactory *base)
{
    (void)base;
    return false;
}

/* --- exports --- */

/* The oldest function table has CreateStatus at the same place: enough to say what is wrong. */
static OrtStatus *refuse(const OrtApiBase *base)
{
    const OrtApi *api = base->GetApi(1);
    char text[256];
    snprintf(text, sizeof(text),
             "%s was built for version %d of ONNX Runtime's C API; this is ONNX Runtime %s",
             VNPU_NAME, ORT_API_VERSION, base->GetVersionString());
    return api != NULL ? api->CreateStatus(ORT_NOT_IMPLEMENTED, text) : NULL;
}

static void fill(struct vnpu_factory *f)
{
    f->base = (OrtEpFactory){
        .ort_version_supported = ORT_API_VERSION,
        .GetName = factory_name,
        .GetVendor = factory_vendor,
        .GetVendorId = factory_vendor_id,
        .GetVersion = factory_version,
        .GetSupportedDevices = factory_devices,
        .CreateEp = factory_create_ep,
        .ReleaseEp = factory_release_ep,
        .ValidateCompiledModelCompatibilityInfo = factory_validate,
        .CreateAllocator = factory_create_allocator,
        .ReleaseAllocator = factory_release_allocator,
        .CreateDataTransfer = factory_data_transfer,
        .IsStreamAware = factory_stream_aware,
    };
}

OrtStatus *CreateEpFactories(const char *registered_name, const OrtApiBase *base,
                             const OrtLogger *logger, OrtEpFactory **factories, size_t max,
                             size_t *n)
{
    const OrtApi *api = base->GetApi(ORT_API_VERSION);
    struct vnpu_fault fault;
    void *p;
    (void)registered_name;
    *n = 0;
    if (api == NULL) return refuse(base);
    if (max == 0) return vnpu_fail(api, "ORT left no room for a factory");
    VNPU_TRY(vnpu_fault_parse(api, getenv("WINML_VNPU_FAULT"), &fault));
    VNPU_TRY(vnpu_fault_strike(api, &fault, VNPU_REGISTER));
    VNPU_TRY(vnpu_array(api, 1, sizeof(struct vnpu_factory), &p));
    struct vnpu_factory *f = p;
    fill(f);
    f->api = api;
    f->ep_api = api->GetEpApi();
    f->editor = api->GetModelEditorApi();
    f->logger = logger;
    f->fault = fault;
    if (f->ep_api == NULL || f->editor == NULL) {
        free(f);
        return vnpu_fail(
            api, "this build of ONNX Runtime has no plugin-EP or no model-editor functions");
    }
    factories[0] = &f->base;
    *n = 1;
    return NULL;
}

OrtStatus *ReleaseEpFactory(OrtEpFactory *base)
{
    struct vnpu_factory *f = factory_of(base);
    if (f == NULL) return NULL;
    OrtStatus *st = vnpu_fault_strike(f->api, &f->fault, VNPU_UNLOAD);
    if (f->hardware != NULL) f->ep_api->ReleaseHardwareDevice(f->hardware);
    vnpu_shared_release(&f->shared);
    free(f);
    return st;
}

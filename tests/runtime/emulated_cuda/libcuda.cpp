// A libcuda.so.1 that cuda-bindings itself calls, so that what the runtime hands to it is what NVIDIA's prototypes want
// (cuda.h checks these). It does everything at once, and knows two kernels by their names:
//   add_n(float* out, const float* in, int n)   out[i] = in[i]+n for each thread
//   fails(float* out)                           an illegal address, after which the context is lost
#include <cuda.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <string>
#include <vector>

struct Function { std::string name; };
struct Node { Function* function; unsigned threads; float* out; const float* in; int n; };
struct Event { double at; };

static uintptr_t context, lost;  // which is current, and which is lost
static double now;
#define ALIVE if (!context) return CUDA_ERROR_INVALID_CONTEXT; if (lost == context) return CUDA_ERROR_ILLEGAL_ADDRESS

static Node node(Function* f, unsigned threads, void** given) {
  Node made{f, threads, *(float**)given[0], nullptr, 0};
  if (f->name == "add_n") made.in = *(float**)given[1], made.n = *(int*)given[2];
  return made;
}

static void run(const Node& k) {
  now += 0.25;
  if (k.function->name == "fails") lost = context;
  else for (unsigned i = 0; i < k.threads; i++) k.out[i] = k.in[i] + k.n;
}

extern "C" {
CUresult cuInit(unsigned flags) { return flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS; }
CUresult cuDeviceGetCount(int* count) { *count = 2; return CUDA_SUCCESS; }
CUresult cuDeviceGet(CUdevice* device, int ordinal) { *device = 7 + ordinal; return CUDA_SUCCESS; }
CUresult cuDeviceGetName(char* name, int length, CUdevice device) { strncpy(name, "The shim", length); return CUDA_SUCCESS; }
CUresult cuDeviceTotalMem(size_t* bytes, CUdevice device) { *bytes = (size_t)5 << 30; return CUDA_SUCCESS; }
CUresult cuDeviceGetAttribute(int* found, CUdevice_attribute what, CUdevice device) {
  switch (what) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *found = 8; break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *found = 0; break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *found = 108; break;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE: *found = 32; break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK: *found = 49152; break;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z: *found = 64; break;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR: *found = 2048; break;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X: *found = 0x7fffffff; break;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y: case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z: *found = 65535; break;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK: case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y: *found = 1024; break;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRetain(CUcontext* made, CUdevice device) { *made = (CUcontext)(uintptr_t)device; return CUDA_SUCCESS; }
CUresult cuCtxSetCurrent(CUcontext wanted) { context = (uintptr_t)wanted; return CUDA_SUCCESS; }
CUresult cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice other) { *can = device != other; return CUDA_SUCCESS; }
CUresult cuCtxEnablePeerAccess(CUcontext other, unsigned flags) { ALIVE; return (uintptr_t)other == context ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS; }
CUresult cuGetErrorString(CUresult code, const char** text) { *text = "what went wrong"; return CUDA_SUCCESS; }

CUresult cuStreamCreate(CUstream* made, unsigned flags) { ALIVE; *made = (CUstream)malloc(flags == CU_STREAM_NON_BLOCKING); return CUDA_SUCCESS; }
CUresult cuStreamSynchronize(CUstream stream) { ALIVE; return CUDA_SUCCESS; }
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) { ALIVE; return CUDA_SUCCESS; }
CUresult cuEventCreate(CUevent* made, unsigned flags) { ALIVE; *made = (CUevent) new Event{0}; return CUDA_SUCCESS; }
CUresult cuEventRecord(CUevent event, CUstream stream) { ALIVE; ((Event*)event)->at = now; return CUDA_SUCCESS; }
CUresult cuEventSynchronize(CUevent event) { ALIVE; return CUDA_SUCCESS; }
CUresult cuEventElapsedTime(float* ms, CUevent begun, CUevent ended) { ALIVE; *ms = ((Event*)ended)->at - ((Event*)begun)->at; return CUDA_SUCCESS; }

CUresult cuMemAlloc(CUdeviceptr* made, size_t bytes) { ALIVE; *made = (CUdeviceptr)aligned_alloc(256, (bytes + 255) / 256 * 256); return *made ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY; }
CUresult cuMemFree(CUdeviceptr at) { ALIVE; free((void*)at); return CUDA_SUCCESS; }
CUresult cuMemHostAlloc(void** made, size_t bytes, unsigned flags) { ALIVE; *made = malloc(bytes); return CUDA_SUCCESS; }
CUresult cuMemsetD8Async(CUdeviceptr at, unsigned char value, size_t bytes, CUstream stream) { ALIVE; memset((void*)at, value, bytes); return CUDA_SUCCESS; }
CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) { ALIVE; memcpy((void*)to, from, bytes); return CUDA_SUCCESS; }
CUresult cuMemcpyDtoHAsync(void* to, CUdeviceptr from, size_t bytes, CUstream stream) { ALIVE; memcpy(to, (void*)from, bytes); return CUDA_SUCCESS; }
CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) { ALIVE; memcpy((void*)to, (void*)from, bytes); return CUDA_SUCCESS; }
CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext there, CUdeviceptr from, CUcontext here, size_t bytes, CUstream stream) {
  ALIVE;
  if (there == here || context != (uintptr_t)there) return CUDA_ERROR_INVALID_VALUE;
  memcpy((void*)to, (void*)from, bytes);
  return CUDA_SUCCESS;
}

CUresult cuModuleLoadData(CUmodule* made, const void* image) { ALIVE; *made = (CUmodule)malloc(1); return memcmp(image, "\x7f" "ELF", 4) ? CUDA_ERROR_INVALID_IMAGE : CUDA_SUCCESS; }
CUresult cuModuleUnload(CUmodule module) { ALIVE; free(module); return CUDA_SUCCESS; }
CUresult cuModuleGetFunction(CUfunction* made, CUmodule module, const char* name) { ALIVE; *made = (CUfunction) new Function{name}; return CUDA_SUCCESS; }
CUresult cuFuncGetAttribute(int* found, CUfunction_attribute what, CUfunction function) { *found = 1024; return what == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE; }
CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                        unsigned shared, CUstream stream, void** given, void** extra) {
  ALIVE;
  if (shared || extra || gy * gz * by * bz != 1) return CUDA_ERROR_INVALID_VALUE;
  run(node((Function*)f, gx * bx, given));
  return CUDA_SUCCESS;
}

CUresult cuGraphCreate(CUgraph* made, unsigned flags) { ALIVE; *made = (CUgraph) new std::vector<Node*>; return CUDA_SUCCESS; }
static Node of(const CUDA_KERNEL_NODE_PARAMS* p) { return node((Function*)p->func, p->gridDimX * p->blockDimX, p->kernelParams); }
CUresult cuGraphAddKernelNode(CUgraphNode* made, CUgraph graph, const CUgraphNode* before, size_t count, const CUDA_KERNEL_NODE_PARAMS* p) {
  ALIVE;
  auto& nodes = *(std::vector<Node*>*)graph;
  if (count != (nodes.empty() ? 0 : 1) || (count && (Node*)before[0] != nodes.back())) return CUDA_ERROR_INVALID_VALUE;
  if (p->extra || p->sharedMemBytes || p->gridDimY * p->gridDimZ * p->blockDimY * p->blockDimZ != 1) return CUDA_ERROR_INVALID_VALUE;
  nodes.push_back(new Node(of(p)));
  *made = (CUgraphNode)nodes.back();
  return CUDA_SUCCESS;
}
CUresult cuGraphInstantiateWithFlags(CUgraphExec* made, CUgraph graph, unsigned long long flags) { ALIVE; *made = (CUgraphExec)graph; return CUDA_SUCCESS; }
CUresult cuGraphExecKernelNodeSetParams(CUgraphExec graph, CUgraphNode which, const CUDA_KERNEL_NODE_PARAMS* p) { ALIVE; *(Node*)which = of(p); return CUDA_SUCCESS; }
CUresult cuGraphLaunch(CUgraphExec graph, CUstream stream) {
  ALIVE;
  for (Node* each : *(std::vector<Node*>*)graph) run(*each);
  return CUDA_SUCCESS;
}
CUresult cuGraphExecDestroy(CUgraphExec graph) { ALIVE; return CUDA_SUCCESS; }
CUresult cuGraphDestroy(CUgraph graph) { ALIVE; return CUDA_SUCCESS; }

// NVRTC looks for tables of functions that are not documented. It does without.
CUresult cuGetExportTable(const void** found, const CUuuid* which) { *found = nullptr; return CUDA_ERROR_NOT_FOUND; }
CUresult cuDriverGetVersion(int* version) { *version = CUDA_VERSION; return CUDA_SUCCESS; }
// cuda.h renames what has newer forms (cuMemAlloc is cuMemAlloc_v2), and that is what is asked for here by the old name.
CUresult cuGetProcAddress(const char* name, void** found, int version, cuuint64_t flags, CUdriverProcAddressQueryResult* status) {
  std::string plain = !strcmp(name, "cuGraphInstantiate") ? "cuGraphInstantiateWithFlags" : name;
  void* self = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  *found = nullptr;
  for (const char* form : {"_v3", "_v2", ""})
    if (!*found) *found = dlsym(self, (plain + form).c_str());
  if (status) *status = *found ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  return *found ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
}

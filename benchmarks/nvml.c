/* A stand-in for libnvidia-ml.so.1, so that gpustat, nvgpu and gpuselect can run beside webmon without a GPU.
   Eight idle cards; $PIDS (1,2,3) are processes, one on each of the first cards. It answers at once, so what
   is measured is the tools. Functions that are left out are "not found", which the tools take for "N/A". */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int nvmlReturn_t;
typedef struct { int index; } card;
typedef struct { unsigned long long total, free, used; } memory_v1;
typedef struct { unsigned int version; unsigned long long total, reserved, free, used; } memory_v2;
typedef struct { unsigned int gpu, memory; } utilization;
typedef struct { unsigned int pid; unsigned long long used; unsigned int gi, ci; } process;

enum { CARDS = 8, OK = 0, TOO_SMALL = 7 };
static card cards[CARDS] = {{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}};

nvmlReturn_t nvmlInit_v2(void) { return OK; }
nvmlReturn_t nvmlInitWithFlags(unsigned int flags) { (void)flags; return OK; }
nvmlReturn_t nvmlShutdown(void) { return OK; }
const char *nvmlErrorString(nvmlReturn_t code) { (void)code; return "error"; }
nvmlReturn_t nvmlSystemGetDriverVersion(char *to, unsigned int size) { snprintf(to, size, "550.54.14"); return OK; }
nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *to) { *to = CARDS; return OK; }
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, card **to) { *to = &cards[index % CARDS]; return OK; }
nvmlReturn_t nvmlDeviceGetIndex(card *c, unsigned int *to) { *to = c->index; return OK; }
nvmlReturn_t nvmlDeviceGetName(card *c, char *to, unsigned int size) { (void)c; snprintf(to, size, "NVIDIA RTX A6000"); return OK; }
nvmlReturn_t nvmlDeviceGetUUID(card *c, char *to, unsigned int size) { snprintf(to, size, "GPU-00000000-0000-4000-8000-%012d", c->index); return OK; }
nvmlReturn_t nvmlDeviceGetTemperature(card *c, int sensor, unsigned int *to) { (void)c; (void)sensor; *to = 31; return OK; }
nvmlReturn_t nvmlDeviceGetFanSpeed(card *c, unsigned int *to) { (void)c; *to = 30; return OK; }
nvmlReturn_t nvmlDeviceGetClockInfo(card *c, int kind, unsigned int *to) { (void)c; (void)kind; *to = 210; return OK; }
nvmlReturn_t nvmlDeviceGetMemoryInfo(card *c, memory_v1 *to) {
    (void)c; to->total = 49140ull << 20; to->used = 4ull << 20; to->free = to->total - to->used; return OK;
}
nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(card *c, memory_v2 *to) {
    (void)c; to->total = 49140ull << 20; to->used = 4ull << 20; to->reserved = 0; to->free = to->total - to->used; return OK;
}
nvmlReturn_t nvmlDeviceGetUtilizationRates(card *c, utilization *to) { (void)c; to->gpu = to->memory = 0; return OK; }
nvmlReturn_t nvmlDeviceGetEncoderUtilization(card *c, unsigned int *to, unsigned int *period) { (void)c; *to = 0; *period = 1; return OK; }
nvmlReturn_t nvmlDeviceGetDecoderUtilization(card *c, unsigned int *to, unsigned int *period) { (void)c; *to = 0; *period = 1; return OK; }
nvmlReturn_t nvmlDeviceGetPowerUsage(card *c, unsigned int *to) { (void)c; *to = 21530; return OK; }
nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(card *c, unsigned int *to) { (void)c; *to = 300000; return OK; }
nvmlReturn_t nvmlDeviceGetPerformanceState(card *c, int *to) { (void)c; *to = 8; return OK; }
nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(card *c, unsigned long long *to) { (void)c; *to = 1; return OK; }

static nvmlReturn_t running(card *c, unsigned int *count, process *to) {
    const char *pids = getenv("PIDS");
    unsigned int room = *count;
    for (int i = 0; pids && i < c->index; i++)
        if ((pids = strchr(pids, ','))) pids++;
    *count = pids && *pids ? 1 : 0;
    if (*count > room) return TOO_SMALL;
    if (*count) { memset(to, 0, sizeof *to); to->pid = atoi(pids); to->used = 1024ull << 20; }
    return OK;
}
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(card *c, unsigned int *count, process *to) { return running(c, count, to); }
nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(card *c, unsigned int *count, process *to) { (void)c; (void)to; *count = 0; return OK; }

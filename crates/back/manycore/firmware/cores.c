/* The cores. Each is a thread whose stack is the core's local memory, with a guard below it: what a kernel keeps
 * in private arrays and variables lies there, and a kernel that takes more ends the accelerator. */

/* As kernels know it; crates/back/emit writes the same. */
typedef struct lw_runtime {
    void *context;
    void (*parallel_for)(void *context, int64_t count,
                         void (*task)(void *environment, int64_t begin, int64_t stop),
                         void *environment);
    int64_t global_size[3];
    int64_t local_size[3];
} lw_runtime;

typedef void entry_point(void *const *arguments, const lw_runtime *runtime);
typedef void loop_task(void *environment, int64_t begin, int64_t stop);

/* Address space that is never used, below each local memory: more than the frame of any kernel that the host lets
 * pass, so that none can step over it. */
enum { GUARD_BYTES = 4 << 20, SIGNAL_STACK_BYTES = 64 << 10 };

struct core {
    sem_t start;
    unsigned char *local;
    unsigned char *signal_stack;
    /* Bytes of local memory below the frame that kernels are called from. */
    uint64_t stack_bytes;
    /* A part of a parallel loop, or, where `task` is null, a kernel. */
    loop_task *task;
    void *environment;
    int64_t begin, stop;
};

static struct core *cores;
static uint64_t core_count;
static uint64_t local_bytes;
static __thread uint64_t this_core = UINT64_MAX;

/* The kernel that runs. */
static entry_point *launched;
static void *const *launched_arguments;
static lw_runtime launched_runtime;
static atomic_int launch_under_way;
static int in_parallel;
static sem_t parts_done;
static sem_t cores_ready;

/* Spreads a loop over the cores, the first of which is the caller. */
static void parallel_for(void *context, int64_t count, loop_task *task, void *environment) {
    (void)context;
    if (count <= 0) return;
    uint64_t parts = (uint64_t)count < core_count ? (uint64_t)count : core_count;
    if (this_core != 0 || in_parallel || parts == 1) {
        task(environment, 0, count);
        return;
    }
    in_parallel = 1;
    int64_t each = count / (int64_t)parts, longer = count % (int64_t)parts, begin = each + (longer > 0);
    for (uint64_t part = 1; part < parts; part++) {
        struct core *core = &cores[part];
        core->task = task;
        core->environment = environment;
        core->begin = begin;
        begin += each + ((int64_t)part < longer);
        core->stop = begin;
        sem_post(&core->start);
    }
    task(environment, 0, each + (longer > 0));
    for (uint64_t part = 1; part < parts; part++)
        while (sem_wait(&parts_done)) {}
    in_parallel = 0;
}

/* Leaves what is known in the window and lets the signal do what it does. On a stack of its own: that of the core
 * may be what is at its end. */
static void crashed(int number, siginfo_t *info, void *context) {
    (void)context;
    uint64_t address = (uint64_t)(uintptr_t)info->si_addr;
    put_word(CRASH_AT, 1, this_core);
    put_word(CRASH_AT, 2, address);
    uint64_t overflow = 0;
    if (number == SIGSEGV && this_core < core_count) {
        uint64_t local = (uint64_t)(uintptr_t)cores[this_core].local;
        overflow = address < local && address >= local - GUARD_BYTES;
    }
    put_word(CRASH_AT, 3, overflow);
    put_word(CRASH_AT, 0, (uint64_t)number);
    signal(number, SIG_DFL);
    /* One that was sent does not come again by itself. */
    if (info->si_code <= 0) raise(number);
}

static void *run_core(void *argument) {
    struct core *core = argument;
    this_core = (uint64_t)(core - cores);
    core->stack_bytes = (uint64_t)((unsigned char *)__builtin_frame_address(0) - core->local);
    stack_t stack = {.ss_sp = core->signal_stack, .ss_size = SIGNAL_STACK_BYTES};
    sigaltstack(&stack, NULL);
    sem_post(&cores_ready);
    for (;;) {
        while (sem_wait(&core->start)) {}
        if (core->task) {
            core->task(core->environment, core->begin, core->stop);
            sem_post(&parts_done);
        } else {
            launched(launched_arguments, &launched_runtime);
            launch_under_way = 0;
            answer(DONE);
        }
    }
    return NULL;
}

/* Null, or what failed. */
static const char *start_cores(void) {
    struct sigaction action = {.sa_sigaction = crashed, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    for (size_t at = 0; at < sizeof signals / sizeof *signals; at++) sigaction(signals[at], &action, NULL);
    cores = calloc(core_count, sizeof *cores);
    if (!cores || sem_init(&parts_done, 0, 0) || sem_init(&cores_ready, 0, 0))
        return "there is no memory for the cores";
    for (uint64_t number = 0; number < core_count; number++) {
        struct core *core = &cores[number];
        unsigned char *start = mmap(NULL, GUARD_BYTES + local_bytes + SIGNAL_STACK_BYTES, PROT_NONE,
                                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (start == MAP_FAILED ||
            mprotect(start + GUARD_BYTES, local_bytes + SIGNAL_STACK_BYTES, PROT_READ | PROT_WRITE))
            return "there is no local memory for the cores";
        core->local = start + GUARD_BYTES;
        core->signal_stack = core->local + local_bytes;
        pthread_attr_t attributes;
        pthread_t thread;
        if (sem_init(&core->start, 0, 0) || pthread_attr_init(&attributes) ||
            pthread_attr_setstack(&attributes, core->local, local_bytes) ||
            pthread_create(&thread, &attributes, run_core, core))
            return "a core does not start in its local memory";
        pthread_attr_destroy(&attributes);
    }
    for (uint64_t number = 0; number < core_count; number++)
        while (sem_wait(&cores_ready)) {}
    return NULL;
}

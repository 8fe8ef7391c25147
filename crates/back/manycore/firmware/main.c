/* The loop of commands. Started with the doorbell as its input and the window as its output; ends when the doorbell
 * is closed. */

static enum status obey(uint64_t command) {
    switch (command) {
    case HELLO: {
        uint64_t stack = cores[0].stack_bytes;
        for (uint64_t number = 1; number < core_count; number++)
            if (cores[number].stack_bytes < stack) stack = cores[number].stack_bytes;
        give(1, PROTOCOL_VERSION);
        give(2, core_count);
        give(3, stack);
        return DONE;
    }
    case ALLOCATE: return allocate();
    case FREE: return free_slabs();
    case WRITE: return transfer(0);
    case READ: return transfer(1);
    case LOAD_BEGIN: return load_begin();
    case LOAD_DATA: return load_data();
    case LOAD_END: return load_end();
    case ENTRY: return find_entry();
    case UNLOAD: return unload();
    case LAUNCH: return launch();
    default: return refuse("there is no command %llu", (unsigned long long)command);
    }
}

int main(int count, char **arguments) {
    if (count != 5) return 2;
    window_bytes = strtoull(arguments[1], NULL, 10);
    memory_limit = strtoull(arguments[2], NULL, 10);
    core_count = strtoull(arguments[3], NULL, 10);
    local_bytes = strtoull(arguments[4], NULL, 10);
    page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    prctl(PR_SET_NAME, "lw-manycore");
    signal(SIGPIPE, SIG_IGN);
    window = mmap(NULL, window_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, STDOUT_FILENO, 0);
    if (window == MAP_FAILED) return 3;
    const char *problem = start_cores();
    start_programs();
    for (;;) {
        char ring;
        ssize_t got = read(STDIN_FILENO, &ring, 1);
        if (got < 0 && errno == EINTR) continue;
        /* The host is gone, or it does not wait for its answers. */
        if (got != 1 || launch_under_way) _exit(0);
        enum status status = problem ? refuse("%s", problem) : obey(operand(0));
        if (status != UNDER_WAY) answer(status);
    }
}

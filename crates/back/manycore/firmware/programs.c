/* The loader: images come piece by piece through the window, and are linked into this process. */

enum { PROGRAMS = 1 << 12, NAME_BYTES = 1024 };

struct program {
    int file; /* the image; -1: the slot is free */
    uint64_t bytes;
    uint64_t reserved;
    void *library; /* null: not linked yet */
    entry_point **entries;
    uint64_t entry_count;
    uint32_t generation;
};

static struct program programs[PROGRAMS];

static void start_programs(void) {
    for (size_t slot = 0; slot < PROGRAMS; slot++) programs[slot].file = -1;
}

static struct program *program_of(uint64_t handle) {
    uint64_t slot = (handle & 0xffffffff) - 1;
    if (slot >= PROGRAMS || programs[slot].file < 0 || programs[slot].generation != handle >> 32) return NULL;
    return &programs[slot];
}

static enum status no_program(uint64_t handle) {
    return refuse("there is no program %llx", (unsigned long long)handle);
}

static enum status load_begin(void) {
    uint64_t bytes = operand(1), slot = 0;
    if (bytes > memory_limit) return OUT_OF_MEMORY;
    while (slot < PROGRAMS && programs[slot].file >= 0) slot++;
    if (slot == PROGRAMS) return refuse("%d programs are loaded, and that is the most", PROGRAMS);
    struct program *program = &programs[slot];
    uint64_t reserved = in_pages(bytes);
    if (!reserve_memory(reserved)) return OUT_OF_MEMORY;
    int file = memfd_create("lw-program", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, (off_t)bytes)) {
        int error = errno;
        if (file >= 0) close(file);
        memory_used -= reserved;
        return refuse("there is no room for a program: %s", strerror(error));
    }
    uint32_t generation = program->generation + 1;
    *program = (struct program){.file = file, .bytes = bytes, .reserved = reserved, .generation = generation};
    give(1, handle_of(slot, generation));
    return DONE;
}

static enum status load_data(void) {
    uint64_t handle = operand(1), offset = operand(2), bytes = operand(3);
    struct program *program = program_of(handle);
    if (!program) return no_program(handle);
    if (program->library) return refuse("program %llx is linked already", (unsigned long long)handle);
    if (bytes > data_bytes() || !within(offset, bytes, program->bytes))
        return refuse("%llu bytes at %llu leave an image of %llu bytes", (unsigned long long)bytes,
                      (unsigned long long)offset, (unsigned long long)program->bytes);
    uint64_t written = 0;
    while (written < bytes) {
        ssize_t now = pwrite(program->file, window + DATA_AT + written, bytes - written, (off_t)(offset + written));
        if (now <= 0 && errno != EINTR) return refuse("the image cannot be kept: %s", strerror(errno));
        if (now > 0) written += (uint64_t)now;
    }
    return DONE;
}

/* Null, or why the linker is not to see an image: it maps what the headers say, and touching what is not in the file
 * would end the process. */
static const char *image_problem(const struct program *program) {
    ElfW(Ehdr) header;
    if (pread(program->file, &header, sizeof header, 0) != sizeof header ||
        memcmp(header.e_ident, ELFMAG, SELFMAG) || header.e_type != ET_DYN ||
        header.e_phentsize != sizeof(ElfW(Phdr)))
        return "it is no image";
    for (uint64_t number = 0; number < header.e_phnum; number++) {
        ElfW(Phdr) part;
        uint64_t at = header.e_phoff + number * sizeof part;
        if (!within(at, sizeof part, program->bytes) ||
            pread(program->file, &part, sizeof part, (off_t)at) != sizeof part ||
            !within(part.p_offset, part.p_filesz, program->bytes))
            return "it is not whole";
    }
    return NULL;
}

static enum status load_end(void) {
    uint64_t handle = operand(1);
    struct program *program = program_of(handle);
    if (!program) return no_program(handle);
    if (program->library) return refuse("program %llx is linked already", (unsigned long long)handle);
    const char *problem = image_problem(program);
    if (problem) return refuse("the image cannot be linked: %s", problem);
    /* The file stays open as long as the program is there: libraries are known by their names, and a second one
     * with the same number would be taken for the first. */
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", program->file);
    /* All symbols now: there is no room on a core's stack for the linker. */
    program->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!program->library) return refuse("the image cannot be linked: %s", dlerror());
    return DONE;
}

static enum status find_entry(void) {
    uint64_t handle = operand(1), bytes = operand(2);
    struct program *program = program_of(handle);
    if (!program) return no_program(handle);
    if (!program->library) return refuse("program %llx is not linked yet", (unsigned long long)handle);
    char name[NAME_BYTES];
    if (bytes >= sizeof name || bytes > data_bytes())
        return refuse("a name of %llu bytes is too long", (unsigned long long)bytes);
    memcpy(name, window + DATA_AT, bytes);
    name[bytes] = 0;
    /* Other symbols can be those of libraries that the image needs. */
    void *symbol = strncmp(name, "lw_kernel_", 10) ? NULL : dlsym(program->library, name);
    if (!symbol) return refuse("the program has no entry `%s`", name);
    entry_point **entries = realloc(program->entries, (program->entry_count + 1) * sizeof *entries);
    if (!entries) return OUT_OF_MEMORY;
    program->entries = entries;
    memcpy(&entries[program->entry_count], &symbol, sizeof symbol);
    give(1, program->entry_count++);
    return DONE;
}

static enum status unload(void) {
    struct program *program = program_of(operand(1));
    if (!program) return no_program(operand(1));
    if (program->library) dlclose(program->library);
    close(program->file);
    free(program->entries);
    memory_used -= program->reserved;
    program->file = -1;
    return DONE;
}

/* Has the first core run an entry, and answer when it has. */
static enum status launch(void) {
    static void **pointers;
    static uint64_t *words;
    static uint64_t room;
    uint64_t handle = operand(1), entry = operand(2), count = operand(6);
    struct program *program = program_of(handle);
    if (!program) return no_program(handle);
    if (entry >= program->entry_count)
        return refuse("program %llx has no entry %llu", (unsigned long long)handle, (unsigned long long)entry);
    if (count > data_bytes() / sizeof(struct argument))
        return refuse("%llu arguments are more than the window holds", (unsigned long long)count);
    for (int axis = 0; axis < 3; axis++) {
        int64_t size = (int64_t)operand(3 + axis);
        if (size < 1) return refuse("a group of %lld work-items along axis %d", (long long)size, axis);
        launched_runtime.global_size[axis] = launched_runtime.local_size[axis] = size;
    }
    if (count > room) {
        void **more_pointers = realloc(pointers, count * sizeof *pointers);
        if (more_pointers) pointers = more_pointers;
        uint64_t *more_words = realloc(words, count * sizeof *words);
        if (more_words) words = more_words;
        if (!more_pointers || !more_words) return OUT_OF_MEMORY;
        room = count;
    }
    for (uint64_t at = 0; at < count; at++) {
        struct argument argument;
        memcpy(&argument, window + DATA_AT + at * sizeof argument, sizeof argument);
        if (argument.kind == INTEGER) {
            words[at] = argument.value;
            pointers[at] = &words[at];
            continue;
        }
        if (argument.kind != MEMORY)
            return refuse("argument %llu is of no kind there is", (unsigned long long)at);
        struct slab *slab = slab_of(argument.value);
        if (!slab)
            return refuse("argument %llu is in slab %llx, which is not there", (unsigned long long)at,
                          (unsigned long long)argument.value);
        if (!within(argument.offset, argument.bytes, slab->bytes))
            return refuse("argument %llu has %llu bytes at %llu of a slab of %llu bytes", (unsigned long long)at,
                          (unsigned long long)argument.bytes, (unsigned long long)argument.offset,
                          (unsigned long long)slab->bytes);
        pointers[at] = slab->start + argument.offset;
    }
    launched = program->entries[entry];
    launched_arguments = pointers;
    launched_runtime.parallel_for = parallel_for;
    launch_under_way = 1;
    cores[0].task = NULL;
    sem_post(&cores[0].start);
    return UNDER_WAY;
}

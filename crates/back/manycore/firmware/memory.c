/* The accelerator's memory: slabs of pages, each with pages behind it that nobody may touch. */

struct slab {
    unsigned char *start; /* null: the slot is free */
    uint64_t bytes;
    uint64_t mapped; /* in pages, without the guard */
    uint32_t generation;
};

enum { SLABS = 1 << 16 };

static struct slab slabs[SLABS];
static uint64_t memory_limit;
static uint64_t memory_used;
static uint64_t page_bytes;

static uint64_t in_pages(uint64_t bytes) { return (bytes + page_bytes - 1) / page_bytes * page_bytes; }

/* Takes so many bytes of what there is; 0 where there are not as many. */
static int reserve_memory(uint64_t bytes) {
    if (bytes > memory_limit - memory_used) return 0;
    memory_used += bytes;
    return 1;
}

static struct slab *slab_of(uint64_t handle) {
    uint64_t slot = (handle & 0xffffffff) - 1;
    if (slot >= SLABS || !slabs[slot].start || slabs[slot].generation != handle >> 32) return NULL;
    return &slabs[slot];
}

static enum status allocate(void) {
    static uint64_t next;
    uint64_t bytes = operand(1);
    if (bytes > memory_limit) return OUT_OF_MEMORY;
    uint64_t slot = next, tried = 0;
    while (slabs[slot].start) {
        slot = (slot + 1) % SLABS;
        if (++tried == SLABS) return OUT_OF_MEMORY;
    }
    /* A slab without bytes has an address, too. */
    uint64_t mapped = in_pages(bytes ? bytes : 1);
    if (!reserve_memory(mapped)) return OUT_OF_MEMORY;
    void *start = mmap(NULL, mapped + page_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED || mprotect(start, mapped, PROT_READ | PROT_WRITE)) {
        if (start != MAP_FAILED) munmap(start, mapped + page_bytes);
        memory_used -= mapped;
        return OUT_OF_MEMORY;
    }
    next = (slot + 1) % SLABS;
    slabs[slot].start = start;
    slabs[slot].bytes = bytes;
    slabs[slot].mapped = mapped;
    slabs[slot].generation++;
    give(1, handle_of(slot, slabs[slot].generation));
    return DONE;
}

/* Frees all that are there, also where some are not. */
static enum status free_slabs(void) {
    enum status status = DONE;
    uint64_t count = operand(1);
    if (count > data_bytes() / sizeof(uint64_t))
        return refuse("%llu slabs are more than the window holds", (unsigned long long)count);
    for (uint64_t at = 0; at < count; at++) {
        uint64_t handle;
        memcpy(&handle, window + DATA_AT + at * sizeof handle, sizeof handle);
        struct slab *slab = slab_of(handle);
        if (!slab) {
            status = refuse("there is no slab %llx to free", (unsigned long long)handle);
            continue;
        }
        munmap(slab->start, slab->mapped + page_bytes);
        memory_used -= slab->mapped;
        slab->start = NULL;
    }
    return status;
}

static enum status transfer(int to_window) {
    uint64_t handle = operand(1), offset = operand(2), bytes = operand(3);
    struct slab *slab = slab_of(handle);
    if (!slab) return refuse("there is no slab %llx to transfer", (unsigned long long)handle);
    if (bytes > data_bytes())
        return refuse("a transfer of %llu bytes is more than the window's %llu", (unsigned long long)bytes,
                      (unsigned long long)data_bytes());
    if (!within(offset, bytes, slab->bytes))
        return refuse("a transfer of %llu bytes at %llu leaves a slab of %llu bytes", (unsigned long long)bytes,
                      (unsigned long long)offset, (unsigned long long)slab->bytes);
    if (to_window) memcpy(window + DATA_AT, slab->start + offset, bytes);
    else memcpy(slab->start + offset, window + DATA_AT, bytes);
    return DONE;
}

/* What the host and the accelerator say to each other. The host's side of it is src/protocol.rs.
 *
 * They share a small window of memory and a doorbell, a stream of bytes. The host writes a request into the
 * window and rings; the accelerator writes an answer there and rings back. Nothing else is shared: the
 * accelerator's memory is its own, and what is to get there or back goes through the window.
 *
 *        0  the request: a command, then its operands
 *      512  the answer: a status, then its values
 *     1024  text of an answer that refuses, ended by a zero byte
 *     2048  what a core that crashed left: its signal, its number, the address, and where that lies
 *     4096  data
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#define PROTOCOL_VERSION 1

enum { REQUEST_AT = 0, ANSWER_AT = 512, TEXT_AT = 1024, CRASH_AT = 2048, DATA_AT = 4096 };
enum { TEXT_BYTES = CRASH_AT - TEXT_AT };

enum command {
    HELLO = 1,   /*                                         -> version, cores, bytes of stack of a core */
    ALLOCATE,    /* bytes                                   -> slab                                     */
    FREE,        /* count of slabs; data                                                                */
    WRITE,       /* slab, offset, bytes; data                                                           */
    READ,        /* slab, offset, bytes                     -> data                                     */
    LOAD_BEGIN,  /* bytes of the image                      -> program                                  */
    LOAD_DATA,   /* program, offset, bytes; data                                                        */
    LOAD_END,    /* program                                                                             */
    ENTRY,       /* program, bytes of the name; data        -> entry                                    */
    UNLOAD,      /* program                                                                             */
    LAUNCH,      /* program, entry, group size (3), count of arguments; data                            */
};

/* A command that is under way is answered by whoever ends it. */
enum status { DONE = 0, OUT_OF_MEMORY = 1, REFUSED = 2, UNDER_WAY };

/* An argument of a launch, in the window's data. */
enum argument_kind { INTEGER = 0, MEMORY = 1 };
struct argument {
    uint64_t kind;
    uint64_t value;  /* the integer, or the slab */
    uint64_t offset; /* where in the slab it starts */
    uint64_t bytes;  /* how long it is */
};

/* The window. */
static unsigned char *window;
static uint64_t window_bytes;

static uint64_t data_bytes(void) { return window_bytes - DATA_AT; }

static uint64_t operand(int number) {
    uint64_t value;
    memcpy(&value, window + REQUEST_AT + 8 * (size_t)number, sizeof value);
    return value;
}

static void put_word(size_t at, int number, uint64_t value) {
    memcpy(window + at + 8 * (size_t)number, &value, sizeof value);
}

/* Value `number` of the answer, from 1. */
static void give(int number, uint64_t value) { put_word(ANSWER_AT, number, value); }

/* Puts the answer's status there and rings. The doorbell is this process's input, and goes both ways. */
static void answer(enum status status) {
    put_word(ANSWER_AT, 0, status);
    if (write(STDIN_FILENO, "", 1) != 1) _exit(0);
}

__attribute__((format(printf, 1, 2)))
static enum status refuse(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf((char *)window + TEXT_AT, TEXT_BYTES, format, arguments);
    va_end(arguments);
    return REFUSED;
}

/* Whether `bytes` from `offset` on lie within `whole`. */
static int within(uint64_t offset, uint64_t bytes, uint64_t whole) {
    return offset <= whole && bytes <= whole - offset;
}

/* A number from outside: its slot, and how often that slot has been used, so that the number of something that
 * is gone is not taken for what is there now. */
static uint64_t handle_of(uint64_t slot, uint32_t generation) {
    return (uint64_t)generation << 32 | (slot + 1);
}

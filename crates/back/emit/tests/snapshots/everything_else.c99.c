// `particle` cannot be written in C99: it has a vector as a field, which is aligned to its size, and C99 has no way to say so

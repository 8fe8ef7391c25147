//! The assembler against an independent decoder: what was meant is what the bytes say.

mod integer;
mod oracle;
mod vector;

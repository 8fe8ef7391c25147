// Runs kernels for the backend `node`: requests come by the standard input, answers go to the standard output.
// Both are parts, each behind its length; a request begins with how many they are. Reading nothing is the end.
'use strict';
const fs = require('fs');

function read(length) {
    const bytes = Buffer.alloc(length);
    for (let at = 0; at < length;) {
        const got = fs.readSync(0, bytes, at, length - at);
        if (got === 0) process.exit(0);
        at += got;
    }
    return bytes;
}

function write(bytes) {
    for (let at = 0; at < bytes.length;) at += fs.writeSync(1, bytes, at);
}

function number(value) {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32LE(value);
    return bytes;
}

const part = () => read(read(4).readUInt32LE());
let last = {};

// The program, the call, and memory. A call is {symbol, size, args: [{part, at, bytes} or {part, dtype}], back: the parts
// of memory that are written}.
function answer([text, json, ...memory]) {
    const source = text.toString();
    if (last.source !== source) last = {source, kernels: {}};
    const call = JSON.parse(json.toString());
    last.kernels[call.symbol] ??= new Function(`${source}\nreturn ${call.symbol};`)();
    const view = (bytes, at, length) => new DataView(bytes.buffer, bytes.byteOffset + at, length);
    const args = call.args.map((arg) => arg.dtype
        ? view(memory[arg.part], 0, 8)[`get${arg.dtype}`](0, true)
        : view(memory[arg.part], arg.at, arg.bytes));
    last.kernels[call.symbol](args, call.size.map(BigInt));
    return call.back.map((at) => memory[at]);
}

for (;;) {
    const parts = Array.from({length: read(4).readUInt32LE()}, part);
    let error = '', back = [];
    try {
        back = answer(parts);
    } catch (thrown) {
        error = String(thrown.stack ?? thrown) || 'it failed';
    }
    for (const bytes of [Buffer.from(error), ...back]) {
        write(number(bytes.length));
        write(bytes);
    }
}

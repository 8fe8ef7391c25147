//! A plug-in that takes whole programs: a graph and its schedule.

use crate::abi::{
    self, LW_ARGUMENT_READ, LW_ARGUMENT_SCALAR, LW_ARGUMENT_WRITE, LW_DTYPE_I64, LW_FORM_PROGRAM,
};
use crate::arguments::text_of;
use crate::loaded::{Job, OwnedCode, PluginBackend};
use loopwright_backend::{
    BackendError, CompileOptions, LoopBackend, LoopCode, LoopMemory, LoopProgram,
};
use loopwright_graph::NodeId;
use loopwright_looptree::print_schedule;

impl LoopBackend for PluginBackend {
    fn compile(
        &self,
        program: &LoopProgram,
        options: &CompileOptions,
    ) -> Result<Box<dyn LoopCode>, BackendError> {
        let graph = program.graph();
        let text = program.written().to_string();
        let schedule = print_schedule(graph, program.schedule());
        let code = self.0.compile(
            &Job {
                kernel: program.name(),
                form: LW_FORM_PROGRAM,
                text: &text,
                schedule: &schedule,
                kernels: vec![abi::Kernel {
                    name: text_of(program.name()),
                    symbol: text_of(""),
                    group: [1; 3],
                }],
                math: &[],
            },
            options,
        )?;
        // What a state becomes is written to the state's memory, which is given once.
        let updates = graph.updates().iter().map(|update| update.value);
        let updated: Vec<NodeId> = updates.collect();
        let nodes = graph.node_ids().filter(|node| !updated.contains(node));
        Ok(Box::new(PluginProgram {
            nodes: nodes.map(|node| (node, graph.node_name(node))).collect(),
            program: program.clone(),
            code,
        }))
    }
}

/// What the plug-in made of a program.
struct PluginProgram {
    program: LoopProgram,
    /// The nodes that may have memory, with their names.
    nodes: Vec<(NodeId, String)>,
    code: OwnedCode,
}

impl LoopCode for PluginProgram {
    fn run(&self, memory: &mut LoopMemory<'_>) -> Result<(), BackendError> {
        let graph = self.program.graph();
        let mut integers: Vec<(&str, i64)> = graph
            .integers()
            .map(|(symbol, name, _)| (name, memory.binding().value(symbol).to_le()))
            .collect();
        let scalars = integers.iter_mut().map(|(name, value)| abi::Argument {
            kind: LW_ARGUMENT_SCALAR,
            dtype: LW_DTYPE_I64,
            memory: std::ptr::from_mut(value).cast(),
            bytes: size_of::<i64>() as u64,
            name: text_of(name),
        });
        let mut arguments: Vec<abi::Argument> = scalars.collect();
        for (node, name) in &self.nodes {
            let (kind, start, bytes) = if let Some(bytes) = memory.bytes_mut(*node) {
                (LW_ARGUMENT_WRITE, bytes.as_mut_ptr(), bytes.len())
            } else if let Some(bytes) = memory.bytes(*node) {
                (LW_ARGUMENT_READ, bytes.as_ptr().cast_mut(), bytes.len())
            } else {
                continue;
            };
            arguments.push(abi::Argument {
                kind,
                dtype: graph.node(*node).dtype as u32,
                memory: start.cast(),
                bytes: bytes as u64,
                name: text_of(name),
            });
        }
        // SAFETY: every node's memory is borrowed, exclusively if it is written, for as long as this runs, and
        // has the node's size; each is there once.
        unsafe { self.code.run(self.program.name(), &arguments) }
    }

    fn code(&self) -> Option<String> {
        self.code.text()
    }
}

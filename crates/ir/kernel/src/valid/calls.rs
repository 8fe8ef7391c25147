//! Rules about the call graph: no recursion, no barrier under a loop of independent iterations.

use super::{Fault, ValidationError, at_function};
use crate::ir::{FunctionId, Module, Stmt};
use crate::text::statement_line;
use loopwright_arena::TiVec;

/// The calls of a module, collected while its functions are walked.
pub(super) struct CallGraph<'a> {
    module: &'a Module,
    calls: TiVec<FunctionId, Vec<Call<'a>>>,
    /// Whether a function has a barrier, itself or through what it calls.
    barriers: TiVec<FunctionId, bool>,
}

struct Call<'a> {
    callee: FunctionId,
    /// The statement and its number.
    at: Option<(u32, &'a Stmt)>,
    /// Whether it stands in a loop of independent iterations.
    independent: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Visit {
    New,
    Open,
    Done,
}

impl<'a> CallGraph<'a> {
    pub(super) fn new(module: &'a Module) -> CallGraph<'a> {
        CallGraph {
            module,
            calls: module.functions.iter().map(|_| Vec::new()).collect(),
            barriers: vec![false; module.functions.len()].into(),
        }
    }

    pub(super) fn call(
        &mut self,
        caller: FunctionId,
        callee: FunctionId,
        at: Option<(u32, &'a Stmt)>,
        independent: bool,
    ) {
        self.calls[caller].push(Call {
            callee,
            at,
            independent,
        });
    }

    pub(super) fn barrier(&mut self, function: FunctionId) {
        self.barriers[function] = true;
    }

    /// Walks the graph depth first, callees before callers. The stack is explicit: a chain of calls
    /// may be as long as the module.
    pub(super) fn check(mut self) -> Result<(), ValidationError> {
        let mut visits: TiVec<FunctionId, _> = vec![Visit::New; self.calls.len()].into();
        for start in self.calls.keys() {
            if visits[start] != Visit::New {
                continue;
            }
            visits[start] = Visit::Open;
            let mut stack = vec![(start, 0)];
            while let Some((caller, next)) = stack.last_mut() {
                let caller = *caller;
                let Some(call) = self.calls[caller].get(*next) else {
                    visits[caller] = Visit::Done;
                    stack.pop();
                    continue;
                };
                match visits[call.callee] {
                    Visit::New => {
                        // The call is looked at again once the callee is done.
                        visits[call.callee] = Visit::Open;
                        stack.push((call.callee, 0));
                    }
                    Visit::Open => {
                        let function = self.name(call.callee);
                        return Err(self.error(caller, call, Fault::Recursion { function }));
                    }
                    Visit::Done => {
                        *next += 1;
                        if self.barriers[call.callee] {
                            if call.independent {
                                let through = Some(self.name(call.callee));
                                return Err(self.error(
                                    caller,
                                    call,
                                    Fault::BarrierInParallel { through },
                                ));
                            }
                            self.barriers[caller] = true;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn name(&self, function: FunctionId) -> String {
        format!("@{}", self.module.functions[function].name)
    }

    fn error(&self, caller: FunctionId, call: &Call<'a>, fault: Fault) -> ValidationError {
        let mut error = at_function(self.module, caller, Box::new(fault));
        if let Some((index, stmt)) = call.at {
            let function = &self.module.functions[caller];
            error.place.statement = Some(index);
            error.statement = Some(statement_line(self.module, function, stmt));
        }
        error
    }
}

//! Adds products without rounding them first, where a program leaves that open.
//!
//! Two kinds of sums become `mul_add`s: those that add a product to a running value (`load` of a private array, sums,
//! `store` to the same element: what sums over dimensions are lowered to), and those inside the expansion of a function. All others
//! keep both roundings, so that `x * y - y * x` is 0 for every program and schedule. A backend never leaves this choice to
//! its compiler: what is rounded once stands in the module.
//!
//! Like [`expand_math`](super::expand_math) it is none of [`NAMES`](super::NAMES): it is for backends whose `mul_add` is one
//! instruction, outside strict mode. [`relaxed`](super::relaxed) runs both.

use crate::ir::{Block, Function, Inst, Space, Stmt, Value};
use loopwright_arena::TiVec;
use loopwright_ops::{DType, Op, Scalar, evaluate};
use loopwright_threads::interrupt::unwind_if_asked;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::smallvec;

/// Contracts products that are added to running values.
pub fn accumulations(function: &mut Function) {
    let running = Running::of(function);
    if !running.sums.is_empty() {
        rewrite(function, &|sum, other, _| {
            running.sums.get(&sum) == Some(&other)
        });
    }
}

/// Contracts products that a pass has written: those whose number is not below `first`.
pub(super) fn written_since(function: &mut Function, first: Value) {
    rewrite(function, &|_, _, product| product >= first);
}

/// An element of a private array: the array, and which one, if it has several.
type Element = (Value, Option<Value>);

/// The sums of a function that go on from a running value.
#[derive(Default)]
struct Running {
    /// By array: whether it has one element.
    arrays: FxHashMap<Value, bool>,
    /// What values go on from.
    from: FxHashMap<Value, Element>,
    /// Sums in order, with the operand that they go on from.
    found: Vec<(Value, Value)>,
    stored: FxHashMap<Value, Element>,
    /// Those of `found` that are stored where they come from, or added to until they are.
    sums: FxHashMap<Value, Value>,
}

impl Running {
    fn of(function: &Function) -> Running {
        let mut running = Running::default();
        running.collect(&function.body);
        let mut goes_on = FxHashSet::default();
        for (sum, operand) in running.found.iter().rev() {
            if goes_on.contains(sum) || running.stored.get(sum) == running.from.get(sum) {
                goes_on.insert(*operand);
                running.sums.insert(*sum, *operand);
            }
        }
        running
    }

    fn element(&self, ptr: Value, index: Value) -> Option<Element> {
        let single = self.arrays.get(&ptr)?;
        Some((ptr, (!single).then_some(index)))
    }

    fn collect(&mut self, block: &Block) {
        for stmt in block {
            match stmt {
                Stmt::Let(value, Inst::Alloc { space, count, .. }) if *space == Space::Private => {
                    self.arrays.insert(*value, *count == 1);
                }
                Stmt::Let(value, Inst::Load { ptr, index }) => {
                    if let Some(element) = self.element(*ptr, *index) {
                        self.from.insert(*value, element);
                    }
                }
                Stmt::Let(value, Inst::Map(op @ (Op::Add | Op::Sub), operands)) => {
                    let first = operands.iter().take(if *op == Op::Add { 2 } else { 1 });
                    let mut goes_on = first.filter_map(|operand| {
                        let element = self.from.get(operand)?;
                        Some((*operand, *element))
                    });
                    if let Some((operand, element)) = goes_on.next() {
                        self.from.insert(*value, element);
                        self.found.push((*value, operand));
                    }
                }
                Stmt::Store {
                    ptr, index, value, ..
                } => {
                    if let Some(element) = self.element(*ptr, *index) {
                        self.stored.insert(*value, element);
                    }
                }
                _ => {}
            }
            for inner in stmt.blocks().into_iter().flatten() {
                self.collect(inner);
            }
        }
    }
}

/// Contracts sums of floats with products of the same block that nothing else uses, where `allowed` says so of the sum, its
/// other operand, and the product.
fn rewrite(function: &mut Function, allowed: &dyn Fn(Value, Value, Value) -> bool) {
    let mut body = std::mem::take(&mut function.body);
    let mut pass = Pass {
        uses: vec![0; function.values.len()].into(),
        constants: FxHashMap::default(),
        function,
        allowed,
    };
    pass.count(&body);
    pass.block(&mut body);
    function.body = body;
}

struct Pass<'a> {
    function: &'a mut Function,
    uses: TiVec<Value, u32>,
    constants: FxHashMap<Value, Scalar>,
    allowed: &'a dyn Fn(Value, Value, Value) -> bool,
}

impl Pass<'_> {
    fn count(&mut self, block: &Block) {
        for stmt in block {
            stmt.operands(&mut |operand| self.uses[*operand] += 1);
            if let Stmt::Let(value, Inst::Const(scalar)) = stmt {
                self.constants.insert(*value, *scalar);
            }
            for inner in stmt.blocks().into_iter().flatten() {
                self.count(inner);
            }
        }
    }

    fn block(&mut self, block: &mut Block) {
        unwind_if_asked();
        let mut products: FxHashMap<Value, [Value; 2]> = FxHashMap::default();
        let mut contracted = FxHashSet::default();
        let mut out = Block::with_capacity(block.len());
        for mut stmt in std::mem::take(block) {
            for inner in stmt.blocks_mut().into_iter().flatten() {
                self.block(inner);
            }
            if let Stmt::Let(value, Inst::Map(op, operands)) = &mut stmt
                && let [left, right] = operands[..]
                && let Some(DType::F32 | DType::F64) = self.function.ty(*value).dtype()
            {
                match *op {
                    Op::Mul => {
                        products.insert(*value, [left, right]);
                    }
                    Op::Add | Op::Sub => {
                        // The second operand first: running values are the first.
                        let product =
                            [(right, left), (left, right)]
                                .into_iter()
                                .find(|&(product, other)| {
                                    self.uses[product] == 1
                                        && products.contains_key(&product)
                                        && (self.allowed)(*value, other, product)
                                });
                        if let Some((product, other)) = product {
                            let [mut a, b] = products[&product];
                            let mut c = other;
                            if *op == Op::Sub {
                                match product == right {
                                    true => a = self.negated(a, &mut out),
                                    false => c = self.negated(c, &mut out),
                                }
                            }
                            contracted.insert(product);
                            stmt = Stmt::Let(*value, Inst::Map(Op::MulAdd, smallvec![a, b, c]));
                        }
                    }
                    _ => {}
                }
            }
            out.push(stmt);
        }
        out.retain(|stmt| !matches!(stmt, Stmt::Let(value, _) if contracted.contains(value)));
        *block = out;
    }

    fn negated(&mut self, value: Value, out: &mut Block) -> Value {
        let known = self.constants.get(&value);
        let known = known.and_then(|scalar| evaluate(Op::Neg, &[*scalar]).ok());
        let ty = self.function.ty(value).clone();
        let negative = self.function.value(ty, "");
        out.push(Stmt::Let(
            negative,
            match known {
                Some(scalar) => Inst::Const(scalar),
                None => Inst::Map(Op::Neg, smallvec![value]),
            },
        ));
        negative
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FunctionId, parse};
    use loopwright_text::Source;

    fn contracted(body: &str) -> String {
        let text = format!(
            "loopwright kernel 1\n\nkernel @k(%x: read ptr<global, f32>, %y: readwrite ptr<global, f32>) {{\n  \
             %zero: i64 = const 0\n  %one: i64 = const 1\n  %a: f32 = load %x[%zero]\n  %b: f32 = load %x[%one]\n  \
             %sum: ptr<private, f32> = alloc private f32 x 1\n  %row: ptr<private, f32> = alloc private f32 x 4\n{body}}}\n"
        );
        let mut module = parse(&Source::new("k.lwk", text)).expect("the kernel is valid");
        accumulations(&mut module.functions[FunctionId(0)]);
        module.functions[FunctionId(0)].compact();
        crate::validate(&module).expect("the kernel stays valid");
        module.to_string()
    }

    #[test]
    fn products_are_contracted_into_running_values_alone() {
        let running = contracted(
            "  %p: f32 = mul %a, %b\n  %q: f32 = mul %b, %b\n  %before: f32 = load %sum[%zero]\n  \
             %first: f32 = add %before, %p\n  %second: f32 = sub %first, %q\n  store %sum[%zero], %second\n",
        );
        assert_eq!(running.matches("mul_add").count(), 2, "{running}");
        assert!(!running.contains("mul %"), "{running}");
        // A sum of a program, one that is stored elsewhere, one of memory from outside, and a product with two uses.
        for body in [
            "  %p: f32 = mul %a, %b\n  %q: f32 = mul %b, %a\n  %d: f32 = sub %p, %q\n  store %y[%zero], %d\n",
            "  %p: f32 = mul %a, %b\n  %t: f32 = load %row[%zero]\n  %s: f32 = add %t, %p\n  store %row[%one], %s\n",
            "  %p: f32 = mul %a, %b\n  %t: f32 = load %y[%zero]\n  %s: f32 = sub %t, %p\n  store %y[%zero], %s\n",
            "  %p: f32 = mul %a, %b\n  %t: f32 = load %sum[%zero]\n  %s: f32 = add %t, %p\n  store %sum[%zero], %s\n  store %y[%zero], %p\n",
            "  %t: f32 = load %sum[%zero]\n  %p: f32 = mul %t, %b\n  %s: f32 = add %p, %a\n  store %sum[%zero], %s\n",
        ] {
            let kept = contracted(body);
            assert!(!kept.contains("mul_add"), "{kept}");
        }
    }
}

//! The selectors of devices.

use crate::Cursor;
use crate::checks::Report;
use scantling_cel::env::Env;
use scantling_cel::estimate::estimate_selector;
use scantling_cel::kubernetes::{self, KubernetesVersion};
use scantling_cel::shape::{Shape, ShapeKind};
use scantling_cel::types::CelType;
use scantling_value::{ErrorList, FieldError};
use std::sync::{Arc, LazyLock};

const MAX_SELECTORS: usize = 32;
const MAX_EXPRESSION: usize = 10 * 1024;
const MAX_COST: u64 = 1_000_000;

/// The number of attributes and capacities of a device.
const MAX_ENTRIES: u64 = 32;
const MAX_ATTRIBUTE: u64 = 64;
const MAX_DRIVER: u64 = 63;

/// The environment of selectors, and the shape of the device that it declares.
static SELECTORS: LazyLock<(Env, Arc<Shape>)> = LazyLock::new(|| {
    let device = device_shape();
    let base = Arc::new(kubernetes::for_new_selectors(KubernetesVersion::LATEST));
    let env = Env::new(base).with_variable("device", device.ty("kubernetes.DRADevice"));
    (env, device)
});

/// Checks the selectors of devices.
pub(super) fn check_selectors(selectors: &Cursor<'_, '_>, errors: &mut ErrorList) {
    if !errors.max_items(selectors, MAX_SELECTORS) {
        return;
    }
    for selector in selectors.items() {
        let cel = selector.field("cel");
        if cel.is_set() {
            check_expression(&cel.field("expression"), errors);
        } else {
            errors.required(&cel, "");
        }
    }
}

/// Checks that an expression compiles, gives a boolean or an attribute, and is cheap.
fn check_expression(expression: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let text = expression.str();
    if text.len() > MAX_EXPRESSION {
        return errors.push_with(|| FieldError::too_long(expression.path(), MAX_EXPRESSION));
    }
    let (env, device) = &*SELECTORS;
    match env.compile(text) {
        Err(issues) => errors.invalid_value(expression, text, format!("compilation failed: {issues}")),
        Ok(checked) => match checked.result_type() {
            CelType::Bool | CelType::Dyn => {
                // The devices are not known yet, so that the worst case counts.
                if estimate_selector(&checked, device).max > MAX_COST {
                    errors.forbidden(expression, "too complex, exceeds cost limit");
                }
            }
            other => {
                let why = format!("must evaluate to bool or the unknown type, not {other}");
                errors.invalid_value(expression, text, why);
            }
        },
    }
}

/// The device as expressions see it.
fn device_shape() -> Arc<Shape> {
    let of_size = |kind, max_elements| {
        Arc::new(Shape {
            kind,
            nullable: false,
            min_serialized_size: 1,
            max_elements,
        })
    };
    // By domain, then by name.
    let by_name = |value| {
        let inner = of_size(ShapeKind::Map { value }, MAX_ENTRIES);
        of_size(ShapeKind::Map { value: inner }, MAX_ENTRIES)
    };
    Shape::object([
        ("driver", of_size(ShapeKind::String, MAX_DRIVER)),
        ("allowMultipleAllocations", of_size(ShapeKind::Bool, 1)),
        ("attributes", by_name(of_size(ShapeKind::Dyn, MAX_ATTRIBUTE))),
        ("capacity", by_name(of_size(ShapeKind::Quantity, 0))),
    ])
}

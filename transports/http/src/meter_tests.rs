use capsule_api::serde_json::json;

use super::*;

const PRICES: Prices = Prices {
    input: 3.0,
    output: 15.0,
    cache_read: Some(0.3),
    cache_write: None,
};

fn usage(input: u64, output: u64, cache_read: u64, cache_write: u64) -> Usage {
    Usage {
        input,
        output,
        cache_read,
        cache_write,
        ..Usage::default()
    }
}

#[test]
fn the_cost_is_the_sum_of_all_tokens_at_their_prices() {
    let million = 1_000_000;
    assert_eq!(PRICES.cost_micros(&usage(million, million, 0, 0)), Some(18 * million));
    assert_eq!(PRICES.cost_micros(&usage(10, 2, 100, 0)), Some(30 + 30 + 30));
    assert_eq!(PRICES.cost_micros(&Usage::default()), Some(0));
}

#[test]
fn tokens_without_a_price_make_the_cost_unknown_and_not_less() {
    assert_eq!(PRICES.cost_micros(&usage(10, 2, 0, 1)), None);
}

#[test]
fn the_cost_of_a_turn_is_not_a_sum_of_rounded_parts() {
    let cents = Prices { input: 0.1, ..PRICES };
    let allowance = Allowance {
        prices: Some(cents),
        ..Allowance::default()
    };
    let mut meter = Meter::default();
    let total = (0..100).map(|_| meter.add(usage(1, 0, 0, 0), true, &allowance)).last();
    assert_eq!(total.unwrap().cost_micros, Some(10));
}

#[test]
fn each_limit_is_of_the_whole_conversation() {
    let tokens = Allowance {
        tokens: Some(100),
        ..Allowance::default()
    };
    let mut meter = Meter::default();
    meter.add(usage(50, 20, 20, 9), true, &tokens);
    assert_eq!(meter.reached(&tokens), None);
    meter.begin();
    meter.add(usage(0, 1, 0, 0), true, &tokens);
    assert_eq!(meter.reached(&tokens), Some(Limit::Tokens));

    let cost = Allowance {
        cost_micros: Some(100),
        prices: Some(PRICES),
        ..Allowance::default()
    };
    let mut meter = Meter::default();
    meter.add(usage(20, 0, 0, 0), true, &cost);
    assert_eq!(meter.reached(&cost), None);
    meter.add(usage(20, 0, 0, 0), true, &cost);
    assert_eq!(meter.reached(&cost), Some(Limit::Cost));
}

#[test]
fn a_row_of_failures_is_of_one_tool_with_the_same_arguments_and_nothing_between() {
    let (a, b) = (json!({"x": 1, "y": 2}), json!({"x": 2}));
    let same = json!({"y": 2, "x": 1});
    let mut row = SameFailure::default();
    assert_eq!(row.answer([("t", &a, true)].into_iter()), 1);
    assert_eq!(row.answer([("t", &same, true), ("t", &a, true)].into_iter()), 2);
    assert_eq!(row.answer([("u", &b, false), ("t", &a, true)].into_iter()), 3);
    assert_eq!(row.answer([("t", &b, true)].into_iter()), 1, "other arguments");
    assert_eq!(
        row.answer([("t", &a, true)].into_iter()),
        1,
        "another call came between"
    );
    assert_eq!(
        row.answer([("t", &a, true), ("t", &a, false)].into_iter()),
        0,
        "one of them passed"
    );
    assert_eq!(row.answer([("t", &a, true)].into_iter()), 1);
}

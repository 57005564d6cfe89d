//! A program that embeds Laneway: a typed function and a script are steps of one workflow, on one store.
//! `cargo run -p laneway-engine --example order -- /tmp/order.db`

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program that people start")]

use std::process::ExitCode;

use laneway_engine::embed::{self, Call, Engine, Step, Workflow};
use serde::{Deserialize, Serialize};

#[derive(Deserialize)]
struct Charge {
    customer: String,
    amount: u32,
}

#[derive(Serialize, Deserialize)]
struct Receipt {
    number: String,
    amount: u32,
}

async fn charge(call: Call<Charge>) -> Result<Receipt, String> {
    let Charge { customer, amount } = call.input;
    if amount == 0 {
        return Err(format!("there is nothing to charge {customer} for"));
    }
    Ok(Receipt { number: format!("{customer}-{amount}"), amount })
}

fn main() -> ExitCode {
    // Scripts are started by a second process of this program, which leaves none of them behind.
    if let Some(code) = embed::warden() {
        return code;
    }
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    match runtime.block_on(order()) {
        Ok(said) => {
            println!("{said}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn order() -> Result<String, embed::Error> {
    let store = std::env::args().nth(1).unwrap_or_else(|| ".laneway/laneway.db".to_owned());
    let engine = Engine::at(&store).function("charge", charge).own_warden()?.start().await?;
    let workflow = Workflow::new("order")
        .param("customer", serde_json::json!({ "type": "string", "required": true }))
        .step(Step::function("pay", "charge").with("customer", "${{ params.customer }}").with("amount", 5))
        .step(
            Step::script("mail", "echo \"said=receipt $NUMBER\" >> \"$LANEWAY_OUTPUT\"")
                .needs(["pay"])
                .env("NUMBER", "${{ steps.pay.output.number }}"),
        );
    let outcome = engine.run(&workflow, serde_json::json!({ "customer": "ada" })).await?.ok()?;
    let (receipt, mail): (Receipt, serde_json::Value) = (outcome.output("pay")?, outcome.output("mail")?);
    engine.shutdown().await?;
    Ok(format!("paid {}: {}", receipt.amount, mail["said"].as_str().unwrap_or_default()))
}

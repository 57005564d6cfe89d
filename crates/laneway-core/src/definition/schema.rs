//! placeholder
pub fn schema() -> serde_json::Value {
    serde_json::Value::Null
}

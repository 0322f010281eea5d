//! capsule.yaml: parsed with positions, validated, typed.

// Nothing but runes; what is written in the old way is refused.
export default { compilerOptions: { runes: true } };

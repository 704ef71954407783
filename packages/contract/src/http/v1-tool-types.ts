/** Tools that vendors run themselves, with the setting that turns them off in the client that sends them by default. */
const turnedOff: readonly { readonly type: RegExp; readonly setting: string }[] = [
  { type: /^web_search/, setting: 'Codex: web_search = "disabled" in config.toml' },
  { type: /^image_generation$/, setting: 'Codex: image_generation = false under [features] in config.toml' },
];

/** Explains that a type of tool cannot be offered, and what to do about it. */
export function hostedToolError(type: unknown): string {
  const text = `only tools of type "function" can be offered, received ${JSON.stringify(type) ?? 'none'}`;
  if (typeof type !== 'string') return text;
  const setting = turnedOff.find((one) => one.type.test(type))?.setting;
  return `${text}: this gateway does not run hosted tools, turn it off in the client${setting === undefined ? '' : ` (${setting})`}`;
}

import type { Tool } from './tool.ts';

const descriptionCharacters = 200;

/** One line for people. A tool's description of a call contains the model's text: it is bounded and cleaned, of secrets before it is cut. */
export function describeCall(tool: Tool, args: unknown, hideSecrets: ((text: string) => string) | undefined): string {
  const said = tool.describe?.(args) ?? tool.name;
  const text = hideSecrets?.(said) ?? said;
  return text.length <= descriptionCharacters && !/[\p{C}\p{Zl}\p{Zp}]/u.test(text) ? text : oneLine(text);
}

const oneLine = (text: string) =>
  text
    .slice(0, descriptionCharacters)
    .toWellFormed()
    .replace(/[\p{C}\p{Zl}\p{Zp}]+/gu, ' ')
    .trim();

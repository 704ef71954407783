import { headOf } from '../../../../kernel/cut-text.ts';

/** Matches `{{node.result}}` and `${NAME}`. */
const placeholders = /\{\{\s*([A-Za-z0-9][A-Za-z0-9_-]{0,63})\.result\s*\}\}|\$\{([A-Za-z_][A-Za-z0-9_]{0,63})\}/g;
/** Maximum characters of a filled text. */
const maxFilled = 100_000;

export interface Fillings {
  /** Returns the text for the result of a node; undefined when there is none. */
  readonly result: (nodeId: string) => string | undefined;
  readonly variables: Readonly<Record<string, string>>;
}

/** Fills a text in a single pass, so that filled-in text is never filled again; missing values leave a visible marker. */
export function fillTemplate(text: string, { result, variables }: Fillings): string {
  const parts: string[] = [];
  let length = 0;
  let from = 0;
  const add = (part: string) => {
    parts.push(part);
    length += part.length;
  };
  for (const { 0: placeholder, 1: nodeId, 2: name = '', index } of text.matchAll(placeholders)) {
    add(text.slice(from, index));
    from = index + placeholder.length;
    if (nodeId !== undefined) add(result(nodeId) ?? `[no result of node ${nodeId}]`);
    else add(Object.hasOwn(variables, name) ? (variables[name] ?? '') : `[no value for ${name}]`);
    // A short text may name a long value thousands of times, so stop before building text that is cut off.
    if (length > maxFilled) break;
  }
  if (length <= maxFilled) add(text.slice(from));
  const filled = parts.join('');
  return filled.length <= maxFilled ? filled : `${headOf(filled, maxFilled)}\n[the rest is omitted]`;
}

/** Characters of a shown task: its variables may be long. */
const shownCharacters = 2_000;

/** Returns a task as people see it in lists: with its variables, cut, and without the results of other nodes. */
export function shownTask(task: string, variables: Fillings['variables']): string {
  return headOf(fillTemplate(task, { result: (id) => `{{${id}.result}}`, variables }), shownCharacters);
}

/** Returns the nodes and variables that a text names, each once. */
export function namesIn(text: string): { readonly nodes: readonly string[]; readonly variables: readonly string[] } {
  const nodes = new Set<string>();
  const variables = new Set<string>();
  for (const [, nodeId, name] of text.matchAll(placeholders)) {
    if (nodeId !== undefined) nodes.add(nodeId);
    else if (name !== undefined) variables.add(name);
  }
  return { nodes: [...nodes], variables: [...variables] };
}

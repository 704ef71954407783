import { EvalFile } from '@gatehouse/contract';
import { usageError } from '../failure.ts';
import type { Io } from '../io.ts';
import { plainText } from '../render/plain.ts';
import { readLocalText } from './read-skill.ts';
import { LineCounter, parseDocument } from './yaml.ts';

/** Limit of the body of a request. */
const maxBytes = 1024 * 1024;
const maxShown = 10;

/** Reads a file of test cases in YAML or JSON; errors name line, field and what was expected. */
export async function readEvalFile(given: string, io: Io): Promise<EvalFile> {
  const lines = new LineCounter();
  // Every JSON text is YAML.
  const document = parseDocument(await readLocalText(given, maxBytes, io), { lineCounter: lines });
  const name = plainText(given);
  const [broken] = document.errors;
  if (broken !== undefined) throw usageError(`${name}:${lines.linePos(broken.pos[0]).line}: ${plainText(broken.message.split('\n', 1)[0] ?? '')}`);
  const parsed = EvalFile().safeParse(document.toJS({ maxAliasCount: 20 }));
  if (parsed.success) return parsed.data;

  /** Returns the line of a field, or of what it is missing in. */
  function lineOf(path: readonly PropertyKey[]): number {
    for (let length = path.length; length > 0; length -= 1) {
      const node: unknown = document.getIn(path.slice(0, length), true);
      if (typeof node === 'object' && node !== null && 'range' in node && Array.isArray(node.range)) return lines.linePos(Number(node.range[0])).line;
    }
    return 1;
  }
  const { issues } = parsed.error;
  const shown = issues.slice(0, maxShown).map(({ path, message }) => {
    const field = path
      .map((part) => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`))
      .join('')
      .replace(/^\./, '');
    return `${name}:${lineOf(path)}: ${field === '' ? '' : `${plainText(field)}: `}${plainText(message)}`;
  });
  if (issues.length > maxShown) shown.push(`and ${issues.length - maxShown} more`);
  throw usageError(shown.join('\n'), '`gatehouse eval --help` names the fields of a case.');
}

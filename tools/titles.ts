import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';

/** Titles after this commit follow the rule. */
const since = '03b1906270fd50581ed0d78774caa1aa56789dee';
const maxLength = 72;
/** Verbs that look like another form. */
const imperatives = new Set(['bring', 'embed', 'exceed', 'feed', 'focus', 'need', 'ping', 'proceed', 'seed', 'shed', 'speed', 'string']);

/** Returns what is wrong with the title of a commit; undefined when it is an imperative of at most 72 characters. */
export function judgeTitle(title: string): string | undefined {
  if (title.length > maxLength) return `it has ${title.length} characters, at most ${maxLength} are allowed`;
  if (title.endsWith('.')) return 'it ends with a full stop';
  const [, first = ''] = /^(?:[\w./, -]+: )?(\S+)/.exec(title) ?? [];
  const word = first.toLowerCase();
  if (/^(?:a|an|the|this|these)$/.test(word) || (/(?:ed|ing|[^s]s)$/.test(word) && !imperatives.has(word)))
    return `"${first}" is not an imperative: write "scope: add …", "scope: fix …"`;
  return undefined;
}

/** Returns the titles since the rule; undefined where the history does not go back that far, as in a shallow clone. */
function titlesOf(folder: string): readonly string[] | undefined {
  try {
    const output = execFileSync('git', ['log', '--no-merges', '--format=%s', `${since}..HEAD`], {
      cwd: folder,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    return output.split('\n').filter((title) => title !== '');
  } catch {
    return undefined;
  }
}

if (import.meta.main) {
  const { values } = parseArgs({ options: { file: { type: 'string' } } });
  const titles = values.file === undefined ? titlesOf(process.cwd()) : [readFileSync(values.file, 'utf8').split('\n', 1)[0] ?? ''];
  const wrong = (titles ?? []).flatMap((title) => {
    const fault = judgeTitle(title);
    return fault === undefined ? [] : [`"${title}": ${fault}`];
  });
  for (const line of wrong) console.error(line);
  if (titles === undefined) console.log('The history is not here: no title was checked');
  process.exitCode = wrong.length > 0 ? 1 : 0;
}

import type { SkillFinding } from '@gatehouse/contract';
import { AppError } from '../../../../kernel/app-error.ts';
import { plainPath } from '../../../../kernel/safe-path.ts';
import { type Bundle, type BundleFile, digestOf, manifestName, textOf } from '../bundles/bundle.ts';
import { loadText } from '../activation/load-text.ts';
import { type ParsedSkill, parseSkill } from '../bundles/manifest.ts';
import { scanText } from './scan-text.ts';

/** Trust tier of a skill; it follows from the call, never from the files. */
export type Tier = 'operator' | 'community' | 'agent-authored';
export type Verdict = 'safe' | 'caution' | 'dangerous';

export interface VetLimits {
  readonly maxFileBytes: number;
  readonly maxTotalBytes: number;
  readonly maxFiles: number;
}

export interface Vetted {
  readonly verdict: Verdict;
  readonly findings: readonly SkillFinding[];
  readonly digest: string;
  /** The manifest, when it could be read. */
  readonly skill: ParsedSkill | undefined;
}

const maxDepth = 10;
const deepFrom = 6;
const shownFindings = 8;
const scriptName = /\.(?:sh|bash|zsh|fish|py|js|mjs|cjs|ts|rb|pl|php|ps1|lua|awk|r)$/i;
const ignoreName = '.skillignore';

/**
 * Judges the files of a skill: structure first, and when that is valid, the manifest and every text. Looks only at
 * the bytes passed in, which are those that are written afterwards.
 */
export async function vetBundle(bundle: Bundle, limits: VetLimits): Promise<Vetted> {
  const digest = digestOf(bundle.files);
  const structure = checkStructure(bundle, limits);
  if (structure.some(({ severity }) => severity === 'CRITICAL')) return { verdict: 'dangerous', findings: structure, digest, skill: undefined };
  const findings = [...structure];
  let skill: ParsedSkill | undefined;
  for (const { path, bytes } of bundle.files) {
    const text = textOf(bytes) ?? '';
    if (path === manifestName) {
      const parsed = await parseSkill(text);
      if ('why' in parsed) findings.push(critical(path, `BUNDLE_MANIFEST_${parsed.rule}`, 'manifest', parsed.why));
      else {
        skill = parsed;
        for (const key of parsed.executableKeys)
          findings.push(critical(path, 'MANIFEST_EXECUTABLE_KEY', 'manifest', `the key ${JSON.stringify(key)} names something to run`));
      }
    }
    findings.push(...(await scanText(path, text, { isCode: scriptName.test(path) || text.startsWith('#!') })));
  }
  if (skill !== undefined) findings.push(...(await scanShown(skill, bundle.files, findings)));
  return { verdict: verdictOf(findings), findings, digest, skill };
}

/** A model reads a skill differently from its file: without comments that split words, and with YAML escapes resolved. */
async function scanShown(
  { manifest, body }: ParsedSkill,
  files: readonly BundleFile[],
  before: readonly SkillFinding[],
): Promise<readonly SkillFinding[]> {
  const known = new Set(before.filter(({ file }) => file === manifestName).map(({ rule }) => rule));
  const names = files.map(({ path }) => path).join('\n\n');
  const shown = `${manifest.description}\n\n${manifest.allowedTools.join(' ')}\n\n${names}\n\n${loadText(body)}`;
  const found = await scanText(manifestName, shown, { isCode: false });
  // Its lines are not those of the file.
  return found.filter(({ rule }) => !known.has(rule)).map((finding) => ({ ...finding, line: 0 }));
}

function verdictOf(findings: readonly SkillFinding[]): Verdict {
  if (findings.some(({ severity }) => severity === 'CRITICAL')) return 'dangerous';
  return findings.length > 0 ? 'caution' : 'safe';
}

function critical(file: string, rule: string, category: string, description: string): SkillFinding {
  return { file: file.slice(0, 200).toWellFormed(), line: 0, rule, severity: 'CRITICAL', category, description };
}

function warning(file: string, rule: string, description: string): SkillFinding {
  return { file, line: 0, rule, severity: 'WARN', category: 'structure', description };
}

const oddRules = {
  link: ['BUNDLE_SYMLINK_MEMBER', 'is a link'],
  special: ['BUNDLE_BINARY_MEMBER', 'is not a plain file'],
  too_large: ['BUNDLE_FILE_TOO_LARGE', 'is larger than a file of a skill may be'],
  too_many: ['BUNDLE_TOO_MANY_FILES', 'has more files than a skill may have'],
  too_much: ['BUNDLE_TOO_LARGE', 'is larger in all than a skill may be'],
} as const;

function checkStructure({ files, odd }: Bundle, limits: VetLimits): SkillFinding[] {
  const findings: SkillFinding[] = odd.map(({ path, what }) => critical(path, oddRules[what][0], 'structure', oddRules[what][1]));
  const seen = new Set<string>();
  const folders = new Set<string>();
  for (const { path } of files) {
    if (isUnsafe(path)) findings.push(critical(path, 'BUNDLE_PATH_UNSAFE', 'structure', 'is a path that could lead elsewhere'));
    // Names that another file system would treat as equal.
    const same = path.normalize('NFC').toLowerCase();
    if (seen.has(same)) findings.push(critical(path, 'BUNDLE_PATH_UNSAFE', 'structure', 'exists twice with different case'));
    seen.add(same);
    for (let at = path.indexOf('/'); at > 0; at = path.indexOf('/', at + 1)) folders.add(path.slice(0, at).normalize('NFC').toLowerCase());
  }
  for (const { path } of files)
    if (folders.has(path.normalize('NFC').toLowerCase())) findings.push(critical(path, 'BUNDLE_PATH_UNSAFE', 'structure', 'is a file and a folder'));
  const ignored = ignoredBy(files);
  const counted = files.filter(({ path }) => !ignored(path));
  if (counted.length > limits.maxFiles) findings.push(critical('', 'BUNDLE_TOO_MANY_FILES', 'structure', `more than ${limits.maxFiles} files`));
  if (counted.reduce((sum, { bytes }) => sum + bytes.length, 0) > limits.maxTotalBytes)
    findings.push(critical('', 'BUNDLE_TOO_LARGE', 'structure', `more than ${limits.maxTotalBytes} bytes in all`));
  for (const file of files) {
    const { path, bytes, executable } = file;
    if (!ignored(path) && bytes.length > limits.maxFileBytes)
      findings.push(critical(path, 'BUNDLE_FILE_TOO_LARGE', 'structure', `more than ${limits.maxFileBytes} bytes`));
    else if (textOf(bytes) === undefined) findings.push(critical(path, 'BUNDLE_BINARY_MEMBER', 'structure', 'is not text'));
    if (ignored(path)) continue;
    if (executable && !scriptName.test(path) && !bytes.subarray(0, 2).equals(Buffer.from('#!')))
      findings.push(warning(path, 'BUNDLE_EXEC_BIT', 'is executable, but not a script'));
    if (path.split('/').length > deepFrom) findings.push(warning(path, 'BUNDLE_DEEP_NEST', `is nested more than ${deepFrom} folders deep`));
  }
  if (!files.some(({ path }) => path === manifestName)) {
    const other = files.find(({ path }) => path.toLowerCase() === manifestName.toLowerCase());
    if (other !== undefined) findings.push(warning(other.path, 'BUNDLE_MANIFEST_CASE', `differs in case from ${manifestName}`));
    findings.push(critical(manifestName, 'BUNDLE_MANIFEST_MISSING', 'structure', 'is missing'));
  }
  return findings;
}

function isUnsafe(path: string): boolean {
  if (path.split('/').length > maxDepth) return true;
  try {
    return plainPath(path) !== path;
  } catch (error) {
    if (error instanceof AppError) return true;
    throw error;
  }
}

/** The author's own files next to the skill: they do not count towards the limits, but their text is vetted. */
function ignoredBy(files: readonly BundleFile[]): (path: string) => boolean {
  const bytes = files.find(({ path }) => path === ignoreName)?.bytes;
  if (bytes === undefined || bytes.length > 16_384) return () => false;
  const prefixes = bytes
    .toString('utf8')
    .split('\n')
    .map((line) =>
      line
        .trim()
        .replace(/^\.?\//, '')
        .replace(/\*+$/, ''),
    )
    .filter((line) => line !== '' && !line.startsWith('#') && !line.startsWith('!'))
    .slice(0, 100);
  return (path) =>
    path !== manifestName && prefixes.some((prefix) => path === prefix || path.startsWith(prefix.endsWith('/') ? prefix : `${prefix}/`));
}

export type Decision = 'allow' | 'confirm' | 'block';

/** Findings in community skills or by agents need a person; dangerous ones are refused without asking. */
const decisions: Readonly<Record<Tier, Readonly<Record<Verdict, Decision>>>> = {
  operator: { safe: 'allow', caution: 'allow', dangerous: 'confirm' },
  community: { safe: 'allow', caution: 'confirm', dangerous: 'block' },
  'agent-authored': { safe: 'allow', caution: 'confirm', dangerous: 'block' },
};

export function decide(tier: Tier, verdict: Verdict, force: boolean): Decision {
  const decision = decisions[tier][verdict];
  return decision === 'confirm' && force ? 'allow' : decision;
}

/** The error for a refusal (json-rpc.md §4 skills): where and why, never the text itself. */
export function refusalOf(decision: 'confirm' | 'block', { verdict, findings }: Pick<Vetted, 'verdict' | 'findings'>): AppError {
  const shown = findings
    .toSorted((a, b) => (a.severity === b.severity ? 0 : a.severity === 'CRITICAL' ? -1 : 1))
    .slice(0, shownFindings)
    .map(
      ({ file, line, rule, category, description }) => `${JSON.stringify(file)}${line > 0 ? `:${line}` : ''} ${rule} (${category}): ${description}`,
    );
  const rest = findings.length - shown.length;
  const list = `${shown.join('; ')}${rest > 0 ? `; and ${rest} more` : ''}`;
  return decision === 'confirm'
    ? new AppError(
        'precondition_failed',
        `[skill_vet_confirm:${verdict}] Nothing was written. Repeat the same call with force: true to accept: ${list}`,
        { param: 'force' },
      )
    : new AppError('denied', `[skill_vet_rejected:${verdict}] Nothing was written: ${list}`);
}

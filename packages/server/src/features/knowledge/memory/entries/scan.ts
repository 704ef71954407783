import { detectInjection } from '../../../../runtime/injection.ts';

export interface ScanFinding {
  /** `warn`: may be stored, at trust `external` with the tag `security-tainted`; `critical`: must not be. */
  readonly severity: 'clean' | 'warn' | 'critical';
  /** Names of the findings. */
  readonly patterns: readonly string[];
}

/**
 * Patterns that no memory needs and that would do harm if a model obeyed them later: memories are read again in turns
 * that nobody watches. Every quantifier is bounded.
 */
const critical: readonly { readonly name: string; readonly matches: RegExp }[] = [
  { name: 'execute_command', matches: /["'`<]?\b(?:exec(?:ute)?[_ -]?command|run[_ -]?shell|shell[_ -]?exec)\b["'`]?\s{0,4}[:=(>]/i },
  { name: 'elevated_flag', matches: /["'`]?\belevated\b["'`]?\s{0,4}[:=]\s{0,4}["'`]?(?:true|1|yes|on|full)\b/i },
  {
    name: 'recursive_delete',
    matches:
      /\brm\s{1,4}(?:-{1,2}[\w-]{1,20}\s{1,4}){0,4}-(?:[a-z]{0,6}r[a-z]{0,6}|-recursive)\b|\b(?:rmdir|rd|del)\s{1,4}\/s\b|\bRemove-Item\b[^\n]{0,80}-Recurse\b/i,
  },
  {
    name: 'delete_all',
    matches:
      /\b(?:delete|erase|wipe|destroy|purge)\s{1,4}(?:(?:all|every|everything)\b[^.\n]{0,20}\b(?:files?|folders?|data|databases?|tables?|records?|messages?|e-?mails?|memor(?:y|ies)|accounts?|disks?|backups?)\b|everything\b)|\bdrop\s{1,4}(?:database|schema|table)\b|\btruncate\s{1,4}table\b|\bdelete\s{1,4}from\s{1,4}\w{1,64}\s{0,4}(?:;|$)/im,
  },
];

export type ScanMemory = (content: string) => ScanFinding;

/** Scans text before it is stored as a memory. */
export const scanMemory: ScanMemory = (content) => {
  const harmful = critical.filter(({ matches }) => matches.test(content)).map(({ name }) => name);
  if (harmful.length > 0) return { severity: 'critical', patterns: harmful };
  const injection = detectInjection(content);
  return injection === undefined ? { severity: 'clean', patterns: [] } : { severity: 'warn', patterns: injection.patterns };
};

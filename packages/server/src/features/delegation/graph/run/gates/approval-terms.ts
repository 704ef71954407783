const approving = new Set([
  'approve',
  'approved',
  'yes',
  'yep',
  'yeah',
  'go',
  'confirm',
  'confirmed',
  'proceed',
  'ok',
  'okay',
  'sure',
  'lgtm',
  'sounds good',
  'looks good',
  'do it',
]);
/** Terms that do not change the meaning of an approving term. */
const harmless = new Set([
  'please',
  'thanks',
  'thank you',
  'i',
  'we',
  'it',
  "it's",
  'this',
  'that',
  "that's",
  'all',
  'and',
  'on',
  'ahead',
  'now',
  'with',
  'for',
  'me',
  'us',
]);
const refusing = new Set(
  [
    ['deny', 'denied', 'no', 'nope', 'nah', 'not', 'cannot', 'dont', 'never', 'stop', 'reject', 'rejected', 'refuse', 'refused'],
    ['decline', 'declined', 'disapprove', 'disapproved', 'veto', 'cancel', 'abort', 'hold', 'wait'],
  ].flat(),
);

const words = /sounds good|looks good|do it|thank you|[\p{L}\p{N}][\p{L}\p{M}\p{N}']*/gu;
const plain = /^[\p{L}\p{M}\p{N}\s.,!;:'"()–—-]*$/u;

/**
 * Interprets the answer of a person. One refusing term outweighs all others: "no, don't do it" refuses. An answer approves only when
 * it says nothing else: conditions, questions and unknown terms do not approve, and the person is asked again. Undefined: neither.
 */
export function readApproval(answer: string): boolean | undefined {
  const text = answer
    .normalize('NFKC')
    .toLowerCase()
    .replaceAll(/[’‘`´]/g, "'");
  const single = [...text.matchAll(/[\p{L}\p{N}][\p{L}\p{M}\p{N}']*/gu)].map(([word]) => word.replace(/'+$/, ''));
  if (single.some((word) => refusing.has(word) || word.endsWith("n't"))) return false;
  if (!plain.test(text)) return undefined;
  const said = [...text.replaceAll(/\s+/g, ' ').matchAll(words)].map(([word]) => word.replace(/'+$/, ''));
  return said.some((word) => approving.has(word)) && said.every((word) => approving.has(word) || harmless.has(word)) ? true : undefined;
}

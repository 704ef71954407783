import { createHmac, hash, randomBytes } from 'node:crypto';
import { foldText, hiddenCharacters } from './hidden-text.ts';

/** Source of fenced text, as shown to the model in the opening line: `source`, and attributes that help to judge it. */
export interface FenceLabel {
  readonly source: string;
  /** The text returns to the owner, or to turns that read nothing untrusted: it is data, but taints nobody. */
  readonly clean?: boolean;
  readonly [attribute: string]: string | boolean | undefined;
}

/** Encloses text between lines that its author cannot imitate; see `Fence.wrap`. */
export type FenceText = (text: string, label: FenceLabel) => string;

/**
 * Encloses text that did not come from the operator between two lines that carry a marker which its author cannot
 * know (reliability: prompt fences). Removes hidden characters and breaks imitations of the lines.
 */
export interface Fence {
  /**
   * Without `marker` it is derived from the text under the installation's key: unguessable, yet the same text gets the
   * same lines again, so that the provider's prompt cache keeps its prefix. Otherwise pass one from `newMarker`, drawn once
   * per stored item and stored with it.
   */
  wrap(text: string, label: FenceLabel, marker?: string): string;
  /** Returns 128 random bits in hex. */
  newMarker(): string;
}

export function createFence({ key }: { readonly key: Uint8Array }): Fence {
  // A separate key, so that markers, which the model sees, reveal nothing about other uses of the root key.
  const markerKey = createHmac('sha256', key).update('fence marker').digest('hex');
  // Half of the digest is kept, so nobody can extend the text of a marker; a keyed hash in one step takes a third of the time of an HMAC.
  const markerOf = (text: string) => hash('sha256', markerKey + text).slice(0, 32);
  return {
    wrap(text, label, marker) {
      // Nothing around untrusted text makes it clean.
      const attributes = `${label.clean === true && !holdsTaint(text) ? cleanMark : ''}${printLabel(label)}`;
      const id = marker ?? markerOf(`${attributes}\0${text}`);
      const body = neutralize(text);
      // Only a stored marker can be known to the text that it encloses.
      return `<<<${word} ${id}${attributes}>>>\n${marker === undefined ? body : body.replaceAll(marker, '')}\n<<<END-${word} ${id}>>>`;
    },
    newMarker: () => randomBytes(16).toString('hex'),
  };
}

const word = 'UNTRUSTED-TEXT';
/** Directly after the marker, where no label can put anything and no enclosed text can write. */
const cleanMark = ' provenance="clean"';
/** Matches the opening line of a fence up to its source, which is group 2; group 1 is set when its text is clean. */
export const fenceOpening = new RegExp(`<<<${word} [0-9a-f]{32}(${cleanMark})?(?: source="([^"\\n]*)")?`, 'g');

/** Whether untrusted text is fenced in here; `counts` may exclude sources. */
export function holdsTaint(text: string, counts: (source: string) => boolean = () => true): boolean {
  if (!text.includes(word)) return false;
  for (const [, clean, source = ''] of text.matchAll(fenceOpening)) if (clean === undefined && counts(source)) return true;
  return false;
}

/** Whether a fence of such a source is in here, whatever its text is. */
export function holdsSource(text: string, isMeant: (source: string) => boolean): boolean {
  if (!text.includes(word)) return false;
  for (const [, , source = ''] of text.matchAll(fenceOpening)) if (isMeant(source)) return true;
  return false;
}
// The note that replaces an imitation starts with a bracket, so that nothing can match across it.
const imitation = /<<[^\n<>[]{0,40}?untrusted|untrusted[\p{Pd}_]{1,4}text/iu;
/** Nearly all text is plain ASCII without the word and passes here. */
const mayNeedWork = /untrusted|[^\t\n\r\u0020-\u007e]/i;

function neutralize(text: string): string {
  if (!mayNeedWork.test(text)) return text;
  const visible = text.replace(hiddenCharacters, '');
  return imitation.test(foldText(visible)) ? breakImitations(visible) : visible;
}

/** Rare and slow: folds character by character, to know which part of the original an imitation covers. */
function breakImitations(text: string): string {
  let folded = '';
  const startOf: number[] = [];
  let position = 0;
  for (const character of text) {
    const plain = foldText(character);
    for (let index = 0; index < plain.length; index += 1) startOf.push(position);
    folded += plain;
    position += character.length;
  }
  startOf.push(text.length);
  let result = '';
  let copied = 0;
  for (const match of folded.matchAll(new RegExp(imitation, 'giu'))) {
    const from = startOf[match.index] ?? text.length;
    const to = startOf[match.index + match[0].length] ?? text.length;
    result += `${text.slice(copied, from)}[imitated marker removed]`;
    copied = Math.max(copied, to);
  }
  return result + text.slice(copied);
}

const plainValue = /^[\w .,:;/?&=%@+#()~-]*$/;

function printLabel(label: FenceLabel): string {
  let printed = '';
  for (const [name, value] of Object.entries(label)) {
    if (typeof value === 'string') printed += ` ${name.replace(/[^a-z_-]/gi, '')}="${cleanValue(value)}"`;
  }
  return printed;
}

/** One line, without quotes and brackets, so that no value can close the opening line or add to it. */
function cleanValue(value: string): string {
  const short = value.length > 200 ? `${value.slice(0, 200).toWellFormed()}…` : value;
  if (plainValue.test(short)) return imitation.test(short) ? '' : short;
  return neutralize(
    short
      .normalize('NFKC')
      .replace(/[\p{C}\p{Z}]+/gu, ' ')
      .replace(/["'`<>]/g, ''),
  ).trim();
}

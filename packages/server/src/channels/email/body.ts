import type { FetchMessageObject, MessageStructureObject } from 'imapflow';
import PostalMime from 'postal-mime';
import type { ReceivedAttachment } from '../port.ts';
import { oneLine } from './address.ts';
import { textOfHtml } from './html.ts';
import { ownText } from './text.ts';

/** Largest part with text, encoded; more is cut. */
export const maxPartBytes = 1_048_576;
const maxText = 200_000;
const maxTextParts = 5;
const maxLeaves = 200;
const maxAttachments = 50;

interface Leaf {
  readonly part: string;
  readonly structure: MessageStructureObject;
  readonly isFile: boolean;
  readonly name: string | undefined;
}

/** The parts of a mail, as the server describes them. */
export interface Parts {
  /** Parts with the text, of one kind. */
  readonly texts: readonly string[];
  readonly structures: ReadonlyMap<string, MessageStructureObject>;
  readonly html: string | undefined;
  readonly files: readonly Leaf[];
}

/** Returns which parts of a mail are its text and which are files. */
export function partsOf(structure: MessageStructureObject | undefined): Parts {
  const leaves = structure === undefined ? [] : leavesOf(structure);
  const shown = leaves.filter(({ isFile }) => !isFile);
  const texts = shown.filter(({ structure: { type } }) => type === 'text/plain').slice(0, maxTextParts);
  const html = shown.find(({ structure: { type } }) => type === 'text/html');
  return {
    texts: texts.map(({ part }) => part),
    html: html?.part,
    structures: new Map([...texts, ...(html === undefined ? [] : [html])].map((leaf) => [leaf.part, leaf.structure])),
    files: leaves.filter(({ isFile }) => isFile).slice(0, maxAttachments),
  };
}

function leavesOf(root: MessageStructureObject): Leaf[] {
  const leaves: Leaf[] = [];
  const waiting = [root];
  for (let node = waiting.shift(); node !== undefined && leaves.length < maxLeaves; node = waiting.shift()) {
    if (node.type.startsWith('multipart/')) {
      waiting.unshift(...(node.childNodes ?? []).slice(0, maxLeaves));
      continue;
    }
    const name = node.dispositionParameters?.['filename'] ?? node.parameters?.['name'];
    const isText = node.type === 'text/plain' || node.type === 'text/html';
    leaves.push({ part: node.part ?? '1', structure: node, isFile: !isText || node.disposition === 'attachment' || name !== undefined, name });
  }
  return leaves;
}

/** Returns the files of a mail; nothing of them is loaded. */
export function attachmentsOf({ files }: Parts, validity: string, uid: number): ReceivedAttachment[] {
  return files.map(({ part, structure: { type, size, encoding }, name }) => ({
    ref: `${validity}:${uid}:${part}`,
    name: oneLine(name ?? '', 200).replaceAll(/[/\\]/g, '_') || `attachment-${part}`,
    ...(/^[\w.+-]{1,64}\/[\w.+-]{1,64}$/.test(type) && { mediaType: type }),
    ...(size !== undefined && { bytes: encoding?.toLowerCase() === 'base64' ? Math.floor((size * 57) / 78) : size }),
  }));
}

/** Returns the text that the sender wrote, from the parts that were read. */
export async function textOf({ texts, html, structures }: Parts, bodies: FetchMessageObject['bodyParts']): Promise<string> {
  const read = (part: string) => decode(structures.get(part), bodies?.get(part));
  const plain = (await Promise.all(texts.map(read))).map(({ text }) => text.trim()).filter((text) => text !== '');
  const whole = plain.length > 0 || html === undefined ? plain.join('\n\n') : textOfHtml((await read(html)).html);
  return ownText(whole).slice(0, maxText).toWellFormed();
}

const encodings: ReadonlySet<string> = new Set(['7bit', '8bit', 'binary', 'base64', 'quoted-printable']);

/** Decodes the body of one part by what the server says about it, which the sender wrote. */
async function decode(
  structure: MessageStructureObject | undefined,
  body: Buffer | undefined,
): Promise<{ readonly text: string; readonly html: string }> {
  if (structure === undefined || body === undefined) return { text: '', html: '' };
  const { type, parameters, encoding = '7bit' } = structure;
  const fields = ['charset', 'format', 'delsp'].flatMap((name) => {
    const value = parameters?.[name];
    return value !== undefined && /^[\w.:+-]{1,40}$/.test(value) ? [`; ${name}=${value}`] : [];
  });
  const known = encodings.has(encoding.toLowerCase()) ? encoding : '8bit';
  const head = `MIME-Version: 1.0\r\nContent-Type: ${type === 'text/html' ? type : 'text/plain'}${fields.join('')}\r\nContent-Transfer-Encoding: ${known}\r\n\r\n`;
  const { text = '', html = '' } = await PostalMime.parse(Buffer.concat([Buffer.from(head), body]));
  return { text, html };
}

import type { CallContext } from '../../../kernel/call-context.ts';
import type { DocumentPart, DocumentText } from './api.ts';

/** What a model reads pictures for: the call that asked, and its agent, who pays. */
export type ReadingCall = Pick<CallContext, 'identity' | 'signal' | 'agentCaller'> & {
  /** The agent of calls that no agent makes; the default one otherwise. */
  readonly agentId?: string | undefined;
};

/** Reads pictures of text with a model that sees. */
export interface PictureReader {
  /** Whether there is such a model, and the call may use it. */
  canRead(call: ReadingCall): boolean;
  /** Returns the text of a picture, within the budgets of the agent. */
  read(picture: Uint8Array, what: 'page' | 'image', call: ReadingCall): Promise<string>;
}

const pageOfLabel = /^Page (\d+)\b/;

/** Returns the document with the text of scanned pages at their place. */
export function withScans(document: DocumentText, read: readonly { readonly page: number; readonly text: string }[]): DocumentText {
  const numberOf = ({ label }: DocumentPart): number => Number(pageOfLabel.exec(label)?.[1] ?? 0);
  const seen = new Set(read.map(({ page }) => page));
  const kept = document.parts.filter((part) => !seen.has(numberOf(part)));
  const added = read.filter(({ text }) => text !== '').map(({ page, text }) => ({ label: `Page ${page}`, text }));
  const parts = [...kept, ...added].toSorted((one, other) => numberOf(one) - numberOf(other));
  const left = (document.scannedPages ?? []).filter((page) => !seen.has(page));
  const notes = document.notes.filter((note) => left.length > 0 || !note.includes('probably scanned'));
  return { ...document, parts, scannedPages: left, notes: [...notes, `Read from pictures by a model: ${listPages([...seen])}.`] };
}

function listPages(pages: readonly number[]): string {
  return `${pages.length === 1 ? 'page' : 'pages'} ${pages.join(', ')}`;
}

/** Types that are read as one picture. SVG is text. */
export function isPicture(bytes: Uint8Array): boolean {
  const head = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(12, bytes.byteLength)).toString('latin1');
  return /^(?:\u0089PNG\r\n|\u00ff\u00d8\u00ff|GIF8[79]a|RIFF[\s\S]{4}WEBP)/.test(head);
}

export const imageType = (bytes: Uint8Array): string =>
  bytes[0] === 0x89 ? 'image/png' : bytes[0] === 0xff ? 'image/jpeg' : bytes[0] === 0x47 ? 'image/gif' : 'image/webp';

import PostalMime, { type Address } from 'postal-mime';
import { readMarkup } from './markup.ts';
import { readPlain } from './plain.ts';
import { Refused, type Sink } from './sink.ts';

/** A mail file: headers, text, and the names of what is attached. */
export async function readMail(bytes: Uint8Array, sink: Sink): Promise<void> {
  const mail = await PostalMime.parse(bytes, { maxNestingDepth: 30, maxHeadersSize: 262_144, rfc822Attachments: true }).catch(() => {
    throw new Refused('broken', 'is a broken mail file');
  });
  const headers = [
    ['From', mail.from === undefined ? '' : shown([mail.from])],
    ['To', shown(mail.to ?? [])],
    ['Cc', shown(mail.cc ?? [])],
    ['Date', mail.date ?? ''],
    ['Subject', mail.subject ?? ''],
  ];
  sink.paragraph(headers.flatMap(([name, value]) => (value === '' ? [] : [`${name}: ${value}`])).join('\n'));
  const text = mail.text ?? '';
  if (text.trim() !== '') readPlain(`${text}\n`, sink, false);
  else await readMarkup(mail.html ?? '', sink, false);
  const attached = mail.attachments.map(({ filename, mimeType, content }) => {
    const size = typeof content === 'string' ? content.length : content.byteLength;
    return `- ${(filename ?? 'unnamed').slice(0, 200)} (${mimeType}, ${size} bytes)`;
  });
  if (attached.length > 0) sink.paragraph(`Attachments, not shown:\n${attached.join('\n')}`);
}

function shown(addresses: readonly Address[]): string {
  return addresses
    .slice(0, 100)
    .map(({ name, address }) => (name === '' ? (address ?? '') : `${name} <${address ?? ''}>`))
    .join(', ');
}

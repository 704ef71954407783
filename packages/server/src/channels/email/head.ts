import PostalMime, { addressParser, type Email } from 'postal-mime';
import { isAddress, isMessageId, messageIdsIn, oneLine } from './address.ts';

/** The header of a mail. */
export interface Head {
  readonly messageId: string | undefined;
  /** Its author, in lower case; undefined unless the mail names exactly one. */
  readonly from: { readonly address: string; readonly name: string } | undefined;
  readonly subject: string;
  readonly sentAtMs: number | undefined;
  /** Message-IDs of the mails that it follows, the first of the thread first. */
  readonly references: readonly string[];
  /** Values of the fields with a name, in their order. */
  values(name: string): readonly string[];
  readonly names: readonly string[];
}

const maxSubject = 500;
const maxFrom = 2_000;

/** Parses the header of a mail, as far as it was read. */
export async function parseHead(bytes: Buffer): Promise<Head> {
  const { headers, from, subject = '' } = await PostalMime.parse(bytes);
  const values = (name: string) => headers.filter(({ key }) => key === name).map(({ value }) => value);
  const messageId = messageIdsIn(values('message-id')[0] ?? '')[0];
  const sentAtMs = Date.parse(values('date')[0] ?? '');
  return {
    messageId,
    from: authorOf(values('from'), from),
    subject: oneLine(subject, maxSubject),
    sentAtMs: Number.isNaN(sentAtMs) ? undefined : sentAtMs,
    references: [...new Set([...messageIdsIn(values('references').join(' ')), ...messageIdsIn(values('in-reply-to')[0] ?? '')])].filter(
      (id) => isMessageId(id) && id !== messageId,
    ),
    values,
    names: headers.map(({ key }) => key),
  };
}

/** The fields of a mail with more than one author are read differently by different programs. */
function authorOf(fields: readonly string[], parsed: Email['from']): Head['from'] {
  const [field, ...more] = fields;
  if (field === undefined || field.length > maxFrom || more.length > 0) return undefined;
  const [author, ...others] = addressParser(field, { flatten: true });
  if (author?.address === undefined || others.length > 0 || !isAddress(author.address) || plainAddress(field) !== author.address) return undefined;
  const address = author.address.toLowerCase();
  return { address, name: oneLine(parsed?.name ?? '', 128) || address };
}

/** Returns the address of a field that has one and no other: parsers that search for addresses find them also in names and comments. */
function plainAddress(field: string): string | undefined {
  const unquoted = field.replaceAll(/"(?:[^"\\]|\\.)*"/g, ' ');
  return /^[^<>@"]*<([^<>\s]*)>\s*$/.exec(unquoted)?.[1] ?? /^\s*([^<>\s"]*)\s*$/.exec(field)?.[1];
}

/** Why a mail is not received: an answer to it would be read by nobody, or answered by a program. */
export type Ignored = 'no_author' | 'own' | 'automatic' | 'bulk' | 'list' | 'bounce' | 'no_reply' | 'too_many';

const noReply = /^(?:no[-_.]?reply|do[-_.]?not[-_.]?reply|mailer[-_.]?daemon|postmaster|daemon|bounces?)(?:$|[-+_.=@])/;

/** Returns why nobody waits for an answer to a mail; undefined when somebody may. */
export function ignoredReason({ from, values, names }: Head, ownAddress: string): Exclude<Ignored, 'too_many'> | undefined {
  if (/^multipart\/report\b/i.test(values('content-type')[0]?.trim() ?? '') || values('return-path')[0]?.trim() === '<>') return 'bounce';
  if (from === undefined) return 'no_author';
  if (from.address === ownAddress.toLowerCase()) return 'own';
  if (values('auto-submitted').some((value) => !/^no\s*(?:$|[;(])/i.test(value.trim()))) return 'automatic';
  if (values('precedence').some((value) => /^(?:bulk|junk|list)\b/i.test(value.trim()))) return 'bulk';
  if (names.some((name) => name.startsWith('list-'))) return 'list';
  return noReply.test(from.address) ? 'no_reply' : undefined;
}

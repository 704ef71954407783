import { hash } from 'node:crypto';
import MailComposer from 'nodemailer/lib/mail-composer';
import type { OutgoingPart } from '../port.ts';
import { domainOf, isMessageId, oneLine } from './address.ts';
import type { EmailConfig } from './email.ts';
import type { Thread } from './threads.ts';

/** A mail as it is sent. */
export interface Composed {
  readonly messageId: string;
  readonly raw: Buffer;
}

interface ComposeOptions {
  readonly config: EmailConfig;
  /** The same for each try of the same part. */
  readonly key: string;
  readonly part: OutgoingPart;
  readonly thread: Thread | undefined;
  readonly file: Uint8Array | undefined;
  readonly nowMs: number;
}

const maxSubject = 250;
const maxFileName = 200;

/** Returns the Message-ID of a part: the same for each try, so that it is found, and that it is shown once when it was sent twice. */
export const messageIdOf = (key: string, { address }: Pick<EmailConfig, 'address'>): string =>
  `<${hash('sha256', key).slice(0, 40)}@${domainOf(address)}>`;

/** Returns the subject of an answer: that of the thread behind one `Re:`. */
export function answerSubject(subject: string): string {
  const bare = oneLine(subject, maxSubject).replace(/^(?:(?:re|aw|sv|antw?|ref)(?:\[\d+\])?\s*:\s*)+/i, '');
  return bare === '' ? 'Re: your message' : `Re: ${bare}`;
}

/** Writes a mail. Nothing of the part can end a header. */
export async function compose({ config, key, part, thread, file, nowMs }: ComposeOptions): Promise<Composed> {
  const messageId = messageIdOf(key, config);
  const { replyTo, attachment, markup } = part;
  const last = replyTo !== undefined && isMessageId(replyTo) ? replyTo : thread?.chain.at(-1);
  const references = [...new Set([...(thread?.chain ?? []), ...(last === undefined ? [] : [last])])];
  const isAnswer = last !== undefined;
  const own = oneLine(part.subject ?? '', maxSubject);
  const mail = new MailComposer({
    from: { name: oneLine(config.name ?? '', 128), address: config.address },
    to: { name: '', address: part.conversationId },
    subject: isAnswer
      ? answerSubject(own === '' ? (thread?.subject ?? '') : own)
      : own || `Message from ${oneLine(config.name ?? config.address, 128)}`,
    messageId,
    date: new Date(nowMs),
    ...(isAnswer && { inReplyTo: last, references }),
    // Programs that answer mails do not answer these.
    headers: { 'Auto-Submitted': isAnswer ? 'auto-replied' : 'auto-generated', 'X-Auto-Response-Suppress': 'All' },
    text: part.text,
    ...(markup !== undefined && { html: markup }),
    ...(attachment !== undefined &&
      file !== undefined && {
        attachments: [
          {
            filename: oneLine(attachment.name, maxFileName).replaceAll(/[/\\"]/g, '_') || 'file',
            content: Buffer.from(file),
            contentType: /^[\w.+-]{1,64}\/[\w.+-]{1,64}$/.test(attachment.mediaType) ? attachment.mediaType : 'application/octet-stream',
            contentDisposition: 'attachment' as const,
          },
        ],
      }),
    disableFileAccess: true,
    disableUrlAccess: true,
    newline: '\r\n',
  });
  return { messageId, raw: await mail.compile().build() };
}

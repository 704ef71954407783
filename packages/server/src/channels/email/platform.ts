import { emailActions } from '@gatehouse/contract';
import type { Platform } from '../port.ts';

/** Largest file of a mail, in both directions: most servers refuse mails beyond it. */
export const maxAttachmentBytes = 25 * 1_048_576;

/** Email: received over IMAP, sent over SMTP. */
export const email: Platform = {
  capabilities: {
    channelType: 'email',
    features: {
      reactions: false,
      editMessages: false,
      deleteMessages: false,
      fetchHistory: true,
      attachments: true,
      buttons: false,
      polls: false,
      voiceNotes: false,
      typing: false,
      mentions: false,
    },
    limits: { text: 100_000, textUnit: 'utf16', attachmentBytes: maxAttachmentBytes },
    streaming: 'none',
    threading: 'native',
    chatTypes: ['direct'],
    sendKey: 'lookup',
    actions: Object.keys(emailActions),
  },
  text: { flavour: 'email', most: 100_000, unit: 'utf16', isLine: false, maxParts: 10 },
  rate: { burst: 10, perSecond: 1, perConversation: { burst: 4, perSecond: 0.2 } },
  connectionMode: 'socket',
};

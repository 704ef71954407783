import { once } from '@gatehouse/contract';
import * as z from 'zod';

/** A stored `ChatEndpoint`. */
export const StoredChatEndpoint = once(() =>
  z.strictObject({
    instance: z.string(),
    channelType: z.string(),
    conversationId: z.string(),
    threadId: z.string().nullable(),
    conversationKind: z.enum(['direct', 'shared']),
  }),
);

/** A stored `ChatAuthor`. */
export const StoredChatAuthor = once(() =>
  z.strictObject({ to: StoredChatEndpoint(), senderId: z.string(), trust: z.enum(['owner', 'member', 'guest']) }),
);

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

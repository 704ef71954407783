import * as z from 'zod';
import { method } from '../method.ts';
import { notificationPriorities } from '../shared/channel.ts';
import { AgentId, ChannelEndpoint } from '../shared/session.ts';

export const notification = {
  'notification.send': method({
    scope: 'rpc',
    risk: 'mutate',
    summary: 'Notifies the user of an agent in a channel over which they write to it.',
    description:
      'The target is `channel_type` with `channel_id`, otherwise `notification.primaryChannel` of the agent, otherwise the direct conversation with the newest message of an approved person; always one that people have with the agent. What its policy refuses is a result with `success: false`, not an error. In quiet hours a notification is kept until their end; its `entryId` is in `delivery.list`.',
    params: () =>
      z.strictObject({
        message: z.string().min(1).max(4_096),
        priority: z
          .enum(notificationPriorities)
          .default('normal')
          .describe('`critical` is also sent in quiet hours, unless the agent says otherwise.'),
        channel_type: z.string().min(1).max(32).optional(),
        channel_id: z.string().min(1).max(512).optional().describe('The conversation on the platform; needs `channel_type`.'),
        destination_endpoint: ChannelEndpoint.optional().describe('Must be the resolved target in all fields.'),
        agent_id: AgentId.optional().describe(
          'The agent whose users are notified, by its policy; that of the target when a channel is named, otherwise the default agent.',
        ),
        origin: z
          .enum(['program', 'notification'])
          .default('program')
          .describe('`notification`: it follows from a notification, which `notification.maxChainDepth` must allow.'),
      }),
    result: () =>
      z.strictObject({
        success: z.boolean(),
        entryId: z.string().optional().describe('`ob_…` of its first part.'),
        error: z.string().optional(),
      }),
    errors: ['not_found', 'precondition_failed', 'unavailable'],
    examples: [
      { params: { message: 'The backup is done.' }, result: { success: true, entryId: 'ob_0199e0a0-7c00-7000-8000-000000000001-01' } },
      { params: { message: 'Again.' }, result: { success: false, error: 'duplicate: the same text was sent within 300 s' } },
    ],
    since: '0.1.0',
  }),
};

import * as z from 'zod';
import type { EventDeclaration } from './event.ts';
import { events } from './events.ts';
import { ApiChatGap, ApiChatRequest, ApiChatResult, ApiChatToken } from './http/api-chat.ts';
import { EventGap } from './http/events.ts';
import { HttpError } from './http/health.ts';
import { routes } from './http/routes.ts';
import { RpcReply, RpcRequest } from './http/rpc.ts';
import { createSchemaWriter, type JsonObject, type SchemaUse } from './json-schema.ts';

export type AsyncApiDocument = {
  asyncapi: string;
  info: JsonObject;
  defaultContentType: string;
  servers: Record<string, JsonObject>;
  channels: Record<string, JsonObject>;
  operations: Record<string, JsonObject>;
  components: { schemas: Record<string, JsonObject>; messages: Record<string, JsonObject>; securitySchemes: Record<string, JsonObject> };
};

interface Message {
  readonly use: SchemaUse;
  readonly title: string;
  readonly summary: string;
  readonly tags?: readonly string[];
  readonly access?: string;
}

const output = (schema: z.ZodType): SchemaUse => ({ schema, side: 'output' });
const Ping = z.strictObject({});

/** Names of messages by channel; the key is the `event:` line of a stream. */
const eventMessages: Readonly<Record<string, Message>> = {
  ...Object.fromEntries(
    Object.entries<EventDeclaration>(events).map(([kind, { payload, summary, category, visibility }]): [string, Message] => [
      kind,
      { use: output(payload), title: kind, summary, tags: [category], access: visibility },
    ]),
  ),
  gap: { use: output(EventGap), title: 'gap', summary: 'Events that the client may have missed.' },
  ping: { use: output(Ping), title: 'ping', summary: 'Sent every 15 seconds as a sign that a silent connection is alive.' },
};
const chatMessages: Readonly<Record<string, Message>> = {
  token: { use: output(ApiChatToken()), title: 'token', summary: 'The next part of the answer.' },
  gap: {
    use: output(ApiChatGap()),
    title: 'gap',
    summary: 'The stream continues after a part that is no longer kept; the whole answer is in `done`.',
  },
  done: { use: output(ApiChatResult()), title: 'done', summary: 'The whole answer; the last event.' },
  error: { use: output(HttpError()), title: 'error', summary: 'The turn failed; the last event.' },
};
const chatRequest: Message = { use: { schema: ApiChatRequest(), side: 'input' }, title: 'request', summary: 'The body that starts the stream.' };
const socketMessages: Readonly<Record<string, Message>> = {
  request: {
    use: { schema: RpcRequest(), side: 'input' },
    title: 'request',
    summary: 'A JSON-RPC 2.0 request or notification; see /openrpc.json for the methods.',
  },
  reply: { use: output(RpcReply()), title: 'reply', summary: 'Its reply; notifications have none.' },
};

const bearer = { $ref: '#/components/securitySchemes/bearer' };

/** The AsyncAPI 3.0 document of pushed and streamed messages, served as `/asyncapi.json` and kept in the reference. */
export function asyncApiDocument({
  version,
  baseUrl = 'http://127.0.0.1:4766',
}: {
  readonly version: string;
  readonly baseUrl?: string;
}): AsyncApiDocument {
  const host = baseUrl.replace(/^https?:\/\//, '');
  const secure = baseUrl.startsWith('https:');
  const all = [
    ...named('event', eventMessages),
    ...named('chat', chatMessages),
    ...named('chat', { request: chatRequest }),
    ...named('socket', socketMessages),
  ];
  const writer = createSchemaWriter(
    all.map(([, { use }]) => use),
    { target: 'draft-7', refPrefix: '#/components/schemas/' },
  );
  const http = { $ref: '#/servers/http' };
  return {
    asyncapi: '3.0.0',
    info: {
      title: 'Gatehouse',
      version,
      description:
        'Event streams (text/event-stream: the `event:` line names the message, the `data:` line is its payload) and JSON-RPC over WebSocket. Messages of the channel `events` carry `x-visibility`: who sees them.',
      license: { name: 'MIT' },
    },
    defaultContentType: 'application/json',
    servers: {
      http: { host, protocol: secure ? 'https' : 'http', security: [bearer] },
      websocket: { host, protocol: secure ? 'wss' : 'ws', security: [bearer] },
    },
    channels: {
      events: {
        address: '/api/events',
        servers: [http],
        description: 'All events that the token may see. Resumes after the header `Last-Event-ID`.',
        messages: references('event', eventMessages),
      },
      chatStream: {
        address: routes.apiChatStream.path,
        servers: [http],
        description: routes.apiChatStream.summary,
        messages: references('chat', { request: chatRequest, ...chatMessages }),
      },
      socket: {
        address: routes.ws.path,
        servers: [{ $ref: '#/servers/websocket' }],
        description: routes.ws.summary,
        messages: references('socket', socketMessages),
      },
    },
    operations: {
      sendEvents: { action: 'send', channel: channel('events'), summary: 'The daemon announces an event.' },
      streamChat: {
        action: 'receive',
        channel: channel('chatStream'),
        summary: routes.apiChatStream.summary,
        messages: [{ $ref: '#/channels/chatStream/messages/request' }],
        reply: {
          channel: channel('chatStream'),
          messages: Object.keys(chatMessages).map((key) => ({ $ref: `#/channels/chatStream/messages/${key}` })),
        },
      },
      call: {
        action: 'receive',
        channel: channel('socket'),
        summary: 'A call over the WebSocket; frames in both directions may be batches.',
        messages: [{ $ref: '#/channels/socket/messages/request' }],
        reply: { channel: channel('socket'), messages: [{ $ref: '#/channels/socket/messages/reply' }] },
      },
    },
    components: {
      schemas: writer.components(),
      messages: Object.fromEntries(
        all.map(([id, { use, title, summary, tags, access }]) => [
          id,
          {
            name: title,
            title,
            summary,
            ...(tags !== undefined && { tags: tags.map((name) => ({ name })) }),
            ...(access !== undefined && { 'x-visibility': access }),
            payload: writer.schema(use),
          },
        ]),
      ),
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer', description: 'An access token; over a WebSocket also as `?token=` or subprotocol.' },
      },
    },
  };
}

/** Keys of a document must not contain a colon. */
function keyOf(name: string): string {
  return name.replaceAll(':', '.');
}

function named(prefix: string, messages: Readonly<Record<string, Message>>): [string, Message][] {
  return Object.entries(messages).map(([name, message]) => [`${prefix}.${keyOf(name)}`, message]);
}

function references(prefix: string, messages: Readonly<Record<string, Message>>): JsonObject {
  return Object.fromEntries(Object.keys(messages).map((name) => [keyOf(name), { $ref: `#/components/messages/${prefix}.${keyOf(name)}` }]));
}

function channel(name: string): JsonObject {
  return { $ref: `#/channels/${name}` };
}

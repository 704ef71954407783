import type { Agent } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { RpcReply } from '@gatehouse/contract';
import { WebSocket } from 'ws';
import type * as z from 'zod';
import { bearer, http } from './http.ts';

export type Reply = z.output<ReturnType<typeof RpcReply>>;

/** A JSON-RPC error reply: the call was received and refused. */
export class RpcFailure extends Error {
  readonly code: number;
  constructor(method: string, error: NonNullable<Reply['error']>) {
    super(`${method}: ${error.code} ${error.message}`);
    this.code = error.code;
  }
}

export interface RpcTarget {
  readonly port: number;
  readonly token: string;
  readonly agent?: Agent;
}

let lastId = 0;

/** Makes one call over `POST /rpc`; resolves with the result, rejects with RpcFailure or with what broke the connection. */
export async function rpcCall(
  target: RpcTarget,
  method: string,
  params: unknown,
  options: { readonly signal?: AbortSignal; readonly timeoutMs?: number } = {},
): Promise<unknown> {
  lastId += 1;
  const reply = await http({
    port: target.port,
    path: '/rpc',
    headers: bearer(target.token),
    body: { jsonrpc: '2.0', id: lastId, method, params },
    ...options,
    ...(target.agent !== undefined && { agent: target.agent }),
  });
  if (reply.status !== 200) throw new Error(`${method}: HTTP ${reply.status} ${reply.text.slice(0, 300)}`);
  return resultOf(method, RpcReply().parse(JSON.parse(reply.text)));
}

/** Calls again while the server refuses new work for lack of time, as it does on a machine that does other work too. */
export async function patientCall(...call: Parameters<typeof rpcCall>): Promise<unknown> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await rpcCall(...call);
    } catch (error) {
      if (tries === 60 || !(error instanceof RpcFailure && /more work than it can do/.test(error.message))) throw error;
      await sleep(500);
    }
  }
}

export function resultOf(method: string, reply: Reply): unknown {
  if (reply.error !== undefined) throw new RpcFailure(method, reply.error);
  return reply.result;
}

/** A JSON-RPC connection over `/ws`. */
export interface RpcSocket {
  call(method: string, params: unknown): Promise<unknown>;
  /** Sends a frame unchanged and resolves with the reply of that id. */
  send(frame: Readonly<Record<string, unknown>> & { readonly id: string | number }): Promise<Reply>;
  /** Does the same for text that need not be a frame. */
  sendText(text: string, id: string | number): Promise<Reply>;
  readonly closed: Promise<{ readonly code: number; readonly reason: string }>;
  close(): void;
}

/** Opens a socket; rejects when the upgrade is refused. A close code after the upgrade shows in `closed`. */
export function openSocket(options: {
  readonly port: number;
  readonly token?: string;
  readonly localAddress?: string;
  readonly via?: 'query' | 'header';
  readonly headers?: Readonly<Record<string, string>>;
  /** Called with every reply, also with those without an id. */
  readonly onReply?: (reply: Reply) => void;
}): Promise<RpcSocket> {
  const query = options.token !== undefined && options.via === 'query' ? `?token=${encodeURIComponent(options.token)}` : '';
  const socket = new WebSocket(`ws://127.0.0.1:${options.port}/ws${query}`, {
    headers: { ...(options.token !== undefined && options.via !== 'query' && bearer(options.token)), ...options.headers },
    perMessageDeflate: false,
    ...(options.localAddress !== undefined && { localAddress: options.localAddress }),
  });
  const waiting = new Map<string | number, { resolve(reply: Reply): void; reject(error: Error): void }>();
  let counter = 0;
  const closed = new Promise<{ code: number; reason: string }>((resolve) => {
    socket.on('close', (code, reason) => {
      for (const { reject } of waiting.values()) reject(new Error(`the socket closed with ${code} ${reason.toString()}`));
      waiting.clear();
      resolve({ code, reason: reason.toString() });
    });
  });
  socket.on('message', (data) => {
    for (const reply of RpcReply()
      .array()
      .parse([JSON.parse(String(data))].flat())) {
      options.onReply?.(reply);
      if (reply.id === null) continue;
      waiting.get(reply.id)?.resolve(reply);
      waiting.delete(reply.id);
    }
  });
  const sendText: RpcSocket['sendText'] = (text, id) =>
    new Promise((resolve, reject) => {
      if (socket.readyState !== WebSocket.OPEN) return reject(new Error('the socket is closed'));
      waiting.set(id, { resolve, reject });
      socket.send(text, (error) => error != null && reject(error));
    });
  const send: RpcSocket['send'] = (frame) => sendText(JSON.stringify(frame), frame.id);
  return new Promise((resolve, reject) => {
    socket.on('error', reject);
    socket.on('open', () =>
      resolve({
        send,
        sendText,
        call: async (method, params) => resultOf(method, await send({ jsonrpc: '2.0', id: `c${(counter += 1)}`, method, params })),
        closed,
        close: () => socket.terminate(),
      }),
    );
  });
}

import type { ErrorCode } from '@gatehouse/contract';

/** What the doors tell of their work, for the numbers of `/metrics`. Each call is a few additions. */
export interface DoorMeter {
  /** A request was answered, or its client left (`status` 0). `route` is a declared path, or `none`. */
  request(route: string, family: string, method: string, status: number, ms: number): void;
  /** A JSON-RPC call ended, over whichever transport. */
  call(method: string, outcome: 'ok' | ErrorCode, ms: number): void;
  /** A request or handshake was refused or failed. */
  failed(door: 'http' | 'websocket', code: ErrorCode): void;
  /** A secret was presented that belongs to nobody. */
  wrongSecret(): void;
  rateLimited(): void;
}

/** What the doors let be traced; spans never hold content. */
export interface DoorTracer {
  /** Runs the handler of an admitted request within a server span. `status` is asked for at its end. */
  request<T>(
    about: {
      readonly route: string;
      readonly method: string;
      readonly traceId: string;
      readonly traceparent: string | undefined;
      readonly status: () => number;
    },
    run: () => T | Promise<T>,
  ): Promise<T>;
}

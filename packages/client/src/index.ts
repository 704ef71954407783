export { addRule, type AllowRule, type AskedCall, ruleFor } from './approval-rule.ts';
export { createClient, type Client, type ClientOptions } from './client.ts';
export { type BatchEntry, type BatchOutcome, type BatchOutcomes, type Call, type CallArguments, type CallByName, type CallOptions } from './calls.ts';
export { type Chat, type ChatEvent, type ChatFinish, type ChatRequest, type StreamChat, type StreamOptions, type Usage } from './chat.ts';
export {
  type StreamTurn,
  type StreamTurnOptions,
  type TakeTurn,
  type TurnEvent,
  type TurnOptions,
  type TurnRequest,
  type TurnResult,
} from './turn.ts';
export { type Events, type EventsOptions, type EventStreamState, type GapEvent, type ServerEvent } from './events.ts';
export { type MediaCalls, type MediaOptions, type UploadOptions } from './media.ts';
export { createSocket, type GatehouseSocket, type SocketOptions, type SocketState } from './socket.ts';
export { type Fetch, type HttpOptions } from './http.ts';
export { type RetryOptions } from './retry.ts';
export {
  AuthenticationError,
  CancelledError,
  type ClientErrorCode,
  ConflictError,
  ConnectionError,
  GatehouseError,
  InvalidParamsError,
  MethodNotFoundError,
  NotFoundError,
  PermissionError,
  RateLimitError,
  ServerError,
  TimeoutError,
  UnavailableError,
} from './errors.ts';

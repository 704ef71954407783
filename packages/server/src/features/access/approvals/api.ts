export type { ApprovalChat, NewRequest, RequestState } from './store.ts';

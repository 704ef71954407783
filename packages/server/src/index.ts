export { AppError } from './kernel/app-error.ts';

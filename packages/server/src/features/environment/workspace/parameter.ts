import { AppError } from '../../../kernel/app-error.ts';
import { notHere, plainPath } from '../../../kernel/safe-path.ts';
import { isInternal } from './taint/internal-names.ts';

/** Refuses to read daemon files by name: they include results of other people's turns. */
export function readablePath(param: string, text: string): string {
  try {
    const path = plainPath(text);
    if (isInternal(path)) throw notHere();
    return path;
  } catch (error) {
    throw withParam(param, error);
  }
}

/** Names the parameter in errors that name none. */
export async function at<T>(param: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw withParam(param, error);
  }
}

function withParam(param: string, error: unknown): unknown {
  if (!(error instanceof AppError) || error.details.param !== undefined || error.code === 'internal') return error;
  return new AppError(error.code, error.message, { ...error.details, param });
}

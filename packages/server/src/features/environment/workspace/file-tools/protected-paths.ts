import { AppError } from '../../../../kernel/app-error.ts';
import { plainPath } from '../../../../kernel/safe-path.ts';
import { foldName, isInternal } from '../taint/internal-names.ts';
import { isTemplateName } from '../setup/templates.ts';

/**
 * Returns the path in its plain form if it may be written. Fails with `not_found` like every hostile path, with `denied` for
 * repositories, daemon files and `skills/`, whose files are vetted before they are accepted.
 */
export function writablePath(text: string): string {
  const path = plainPath(text);
  if (isInternal(path)) throw new AppError('denied', 'Files of repositories (.git) and of the daemon (.gatehouse) cannot be changed');
  if (foldName(path.split('/')[0] ?? '') === 'skills')
    throw new AppError('denied', 'Files under skills/ cannot be changed here: skills are added and changed by skills.*, which vets them first');
  return path;
}

/** Returns the template that a path would replace: such a file is part of the prompt of every conversation. */
export function promptFileAt(text: string): string | undefined {
  const name = text.replace(/^\.\//, '').normalize('NFKC').toUpperCase().replace(/\.MD$/, '.md');
  return isTemplateName(name) ? name : undefined;
}

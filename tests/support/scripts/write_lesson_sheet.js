// Write docs/lesson.md, the teacher's sheet, from the steps and questions of the page.
import {writeFileSync} from 'node:fs';

import {markdownOf, sheetBlocks} from '../../../interface/tabs/lab/lesson_sheet.js';

writeFileSync(new URL('../../../docs/lesson.md', import.meta.url), markdownOf(sheetBlocks()));

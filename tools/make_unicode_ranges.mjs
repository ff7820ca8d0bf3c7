// Writes src/llm/tokenizer/unicode_ranges.inc: the letters, numbers and white space of Unicode 15.1.
//
//   npm install --ignore-scripts @unicode/unicode-15.1.0
//   node tools/make_unicode_ranges.mjs node_modules/@unicode/unicode-15.1.0 > src/llm/tokenizer/unicode_ranges.inc
//   clang-format -i src/llm/tokenizer/unicode_ranges.inc
import path from 'node:path';

const root = path.resolve(process.argv[2]);
const codePoints = async (property) =>
    Array.from((await import(path.join(root, property, 'code-points.mjs'))).default);

const classes = [
  ['kLetter', await codePoints('General_Category/Letter')],
  ['kNumber', await codePoints('General_Category/Number')],
  ['kSpace', await codePoints('Binary_Property/White_Space')],
];
const ranges = [];
for (const [name, points] of classes) {
  for (const point of points.sort((a, b) => a - b)) {
    const last = ranges[ranges.length - 1];
    if (last && last.name === name && last.end === point - 1) {
      last.end = point;
    } else {
      ranges.push({name, begin: point, end: point});
    }
  }
}
ranges.sort((a, b) => a.begin - b.begin);
const hex = (value) => '0x' + value.toString(16).toUpperCase().padStart(5, '0');
console.log('// Made by tools/make_unicode_ranges.mjs from the Unicode Character Database 15.1.0.');
let line = '';
for (const range of ranges) {
  const item = `{${hex(range.begin)}, ${hex(range.end)}, CharClass::${range.name}},`;
  if (line.length + item.length > 98) {
    console.log(line.trimEnd());
    line = '';
  }
  line += item + ' ';
}
console.log(line.trimEnd());

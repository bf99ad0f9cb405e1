/* Reads a JPEG and writes the same coefficients with arithmetic coding:
 *   cc arithmetic_jpeg.c -o arithmetic_jpeg -ljpeg && ./arithmetic_jpeg < a.jpg > b.jpg */
#include <stdio.h>

#include <jpeglib.h>

int main(void) {
  struct jpeg_decompress_struct from;
  struct jpeg_compress_struct to;
  struct jpeg_error_mgr errors;
  from.err = to.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&from);
  jpeg_create_compress(&to);
  jpeg_stdio_src(&from, stdin);
  jpeg_read_header(&from, TRUE);
  jvirt_barray_ptr* coefficients = jpeg_read_coefficients(&from);
  jpeg_copy_critical_parameters(&from, &to);
  to.arith_code = TRUE;
  jpeg_stdio_dest(&to, stdout);
  jpeg_write_coefficients(&to, coefficients);
  jpeg_finish_compress(&to);
  jpeg_finish_decompress(&from);
  jpeg_destroy_compress(&to);
  jpeg_destroy_decompress(&from);
  return 0;
}

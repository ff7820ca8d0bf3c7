/* The file ASSAY_EMBEDDED_MODEL as read-only data between two symbols. */
        .section .rodata.assay_embedded_model, "a"
        .balign 64
        .globl assay_embedded_model_begin
        .hidden assay_embedded_model_begin
assay_embedded_model_begin:
        .incbin ASSAY_EMBEDDED_MODEL
        .globl assay_embedded_model_end
        .hidden assay_embedded_model_end
assay_embedded_model_end:
        .byte 0

        /* Nothing here runs, so the stack need not be executable. */
        .section .note.GNU-stack, "", %progbits
